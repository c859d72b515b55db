/** Editions of a short Korean regulation. */
export const VEHICLES = "차량관리규정";

/** An edition that became valid on `day`. */
export const edition = (day: string, sentence: string) => `# ${VEHICLES}

제정 2020. 3. 1.

개정 ${day}

## 제1장 총칙

### 제1조(목적)

이 규정은 차량의 관리를 정한다.

## 제2장 운행

### 제2조(배차)

${sentence} <개정 ${day}>

### 제3조(제한)

제2조에 따라 배차를 제한할 수 있다.

### 제4조(준용)

이 규정에 없는 것은 제9조와 「도로교통법」 제2조를 준용한다.

## 부칙

이 규정은 ${day}부터 시행한다.
`;

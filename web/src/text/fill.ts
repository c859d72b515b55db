import type { Language } from "./tags";

export type Values = Record<string, string | number>;

const PLACEHOLDER = /\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g;

/** `{name}` stands for a value; `{n|document|documents}` for the first form when `n` is 1, else for the second. */
export function filled(text: string, values: Values, tag: Language): string {
  const result = text.replace(PLACEHOLDER, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one !== undefined) return (value === 1 ? one : many) ?? "";
    return typeof value === "number" ? new Intl.NumberFormat(tag).format(value) : value;
  });
  return tag === "ko" ? withParticles(result) : result;
}

/** Forms of a particle after a consonant and after a vowel, as our texts write both. */
const PARTICLES: Record<string, [string, string]> = {
  "을(를)": ["을", "를"],
  "이(가)": ["이", "가"],
  "은(는)": ["은", "는"],
  "과(와)": ["과", "와"],
  "(으)로": ["으로", "로"],
};
const PARTICLE = /([가-힣0-9])([’”"')\]]*)(을\(를\)|이\(가\)|은\(는\)|과\(와\)|\(으\)로)/g;
/** The last consonants of 영, 일, 이 … 구: none, ㄹ, or another one. */
const DIGITS = ["x", "l", "", "x", "", "", "x", "l", "l", ""];

/** Chooses the particle by the syllable or digit before it; after other letters both forms stay. */
function withParticles(text: string): string {
  return text.replace(PARTICLE, (_, last: string, closing: string, both: string) => {
    const [consonant = "", vowel = ""] = PARTICLES[both] ?? [];
    const final = DIGITS[Number(last)] ?? finalOf(last);
    const afterVowel = final === "" || (final === "l" && both === "(으)로");
    return last + closing + (afterVowel ? vowel : consonant);
  });
}

function finalOf(syllable: string): string {
  const final = (syllable.charCodeAt(0) - 0xac00) % 28;
  return final === 0 ? "" : final === 8 ? "l" : "x";
}

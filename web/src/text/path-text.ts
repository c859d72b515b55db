/** A category, or headings, from the outermost to the innermost name: "HR › Leave". */
export const pathText = (names: readonly string[]): string => names.join(" › ");

import eslint from "typescript-eslint";

export default eslint.config(
  { ignores: ["node_modules", "src/api/schema.ts"] },
  ...eslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "max-lines": ["error", { max: 300 }],
      "no-console": "error",
      eqeqeq: "error",
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/method-signature-style": "error",
      "@typescript-eslint/no-non-null-assertion": "error",
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
      // Text of documents and models is never HTML, and styles go through the CSSOM: the Content-Security-Policy says so.
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Text is never HTML." },
        {
          selector: "JSXAttribute[name.name='style'] > Literal",
          message: "Pass an object: the policy forbids style text.",
        },
        {
          selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]",
          message: "Text is never HTML.",
        },
      ],
    },
  },
  { files: ["scripts/**", "*.js", "*.ts", "**/*.mjs"], ...eslint.configs.disableTypeChecked },
  { files: ["scripts/**", "e2e/**"], rules: { "no-console": "off" } },
);

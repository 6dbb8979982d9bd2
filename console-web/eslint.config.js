import js from "@eslint/js";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import globals from "globals";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["dist", "artefacts", "scripts", "src/api/schema.ts", "eslint.config.js"] },
  js.configs.recommended,
  ...ts.configs.strictTypeChecked,
  a11y.flatConfigs.recommended,
  hooks.configs.flat["recommended-latest"],
  {
    languageOptions: {
      globals: globals.browser,
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Handler output and parameters are text, wherever they are shown.
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Text of tasks and runs must never become HTML." },
        { selector: "MemberExpression[property.name=/^(innerHTML|outerHTML)$/]", message: "Text of tasks and runs must never become HTML." },
      ],
      // All requests go through the generated client.
      "no-restricted-globals": ["error", { name: "fetch", message: "Use the generated client (src/api/client.ts)." }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
  { files: ["e2e/**"], rules: { "no-restricted-globals": "off" } },
);

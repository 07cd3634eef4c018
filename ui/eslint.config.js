// What may not be written here. The first rule: text of visitors and scripts never becomes HTML.
import noUnsanitized from "eslint-plugin-no-unsanitized";
import tseslint from "typescript-eslint";

const MARKUP = "text from outside must stay text: render it with <Say>";
const STYLE = "the Content-Security-Policy forbids style attributes: use a class or style={{...}}";

export default tseslint.config(
  { ignores: ["dist/", "node_modules/"] },
  ...tseslint.configs.strict,
  noUnsanitized.configs.recommended,
  {
    rules: {
      "@typescript-eslint/no-non-null-assertion": "off",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-properties": [
        "error",
        ...[
          "innerHTML",
          "outerHTML",
          "insertAdjacentHTML",
          "srcdoc",
          "createContextualFragment",
        ].map((property) => ({ property, message: MARKUP })),
        { object: "document", property: "write", message: MARKUP },
        { object: "document", property: "writeln", message: MARKUP },
      ],
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: MARKUP },
        { selector: "JSXAttribute[name.name='srcdoc']", message: MARKUP },
        { selector: "JSXAttribute[name.name='style'][value.type='Literal']", message: STYLE },
        { selector: "Identifier[name='dangerouslySetInnerHTML']", message: MARKUP },
      ],
    },
  },
);

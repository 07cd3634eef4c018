// Fields of a filter, and what of a query belongs to them.
import type { Query } from "../address";

/** One field of a filter. */
export interface Field {
  key: string;
  label: string;
  placeholder?: string;
  /** Choices; any text without. */
  choices?: [value: string, label: string][];
  isSwitch?: boolean;
  /** Shown only after asking for more. */
  isMore?: boolean;
  title?: string;
}

/** The fields of a query that a form has, trimmed and without empty ones, in the form's order. */
export function chosen(fields: Field[], values: Query): Query {
  const query: Query = {};
  for (const field of fields) {
    const value = (values[field.key] ?? "").trim();
    if (value !== "") query[field.key] = value;
  }
  return query;
}

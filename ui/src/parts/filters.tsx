// A form whose fields are the query of the address: what is asked for can be linked to, and going
// back undoes it.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Query } from "../address";
import { type Field, chosen } from "./filter";

/** Draws the form. `onApply` gets what was chosen. */
export function Filters(props: {
  /** What it is called, where there is more than one. */
  label?: string;
  fields: Field[];
  query: Query;
  apply: string;
  onApply(query: Query): void;
}): JSX.Element {
  const [values, setValues] = useState<Query>(props.query);
  const isMoreUsed = props.fields.some((field) => field.isMore && props.query[field.key]);
  const [isOpen, setOpen] = useState(isMoreUsed);
  useEffect(() => setValues(props.query), [JSON.stringify(props.query)]);
  const set = (key: string, value: string): void => setValues((all) => ({ ...all, [key]: value }));
  const shown = props.fields.filter((field) => isOpen || !field.isMore);
  const hasMore = props.fields.some((field) => field.isMore);
  return (
    <form
      class="filters"
      role="search"
      aria-label={props.label}
      onSubmit={(event) => {
        event.preventDefault();
        props.onApply(chosen(props.fields, values));
      }}
    >
      {shown.map((field) => (
        <FieldInput
          key={field.key}
          field={field}
          value={values[field.key] ?? ""}
          onValue={(value) => set(field.key, value)}
        />
      ))}
      <div class="buttons">
        <button type="submit" class="solid">
          {props.apply}
        </button>
        {Object.keys(chosen(props.fields, props.query)).length > 0 && (
          <button type="button" onClick={() => props.onApply({})}>
            Reset
          </button>
        )}
        {hasMore && (
          <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "Fewer fields" : "More fields"}
          </button>
        )}
      </div>
    </form>
  );
}

function FieldInput(props: {
  field: Field;
  value: string;
  onValue(value: string): void;
}): JSX.Element {
  const { field, value, onValue } = props;
  if (field.isSwitch) {
    return (
      <label class="switch" title={field.title}>
        <input
          type="checkbox"
          name={field.key}
          checked={value === "1"}
          onChange={(event) => onValue(event.currentTarget.checked ? "1" : "")}
        />
        {field.label}
      </label>
    );
  }
  return (
    <label class={`field field-${field.key}`} title={field.title}>
      <span>{field.label}</span>
      {field.choices ? (
        <select
          name={field.key}
          value={value}
          onChange={(event) => onValue(event.currentTarget.value)}
        >
          {field.choices.map(([one, label]) => (
            <option key={one} value={one}>
              {label}
            </option>
          ))}
        </select>
      ) : (
        <input
          type="text"
          name={field.key}
          value={value}
          placeholder={field.placeholder}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </label>
  );
}

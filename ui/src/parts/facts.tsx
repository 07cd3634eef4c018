// Any JSON object as something to read: plain values as pairs, lists of objects as tables, the rest
// as panels within. Units follow from the names.
import type { ComponentChildren, JSX } from "preact";
import { byName, words } from "../text/format";
import { Pairs } from "./page";
import { Say } from "./say";
import { Table } from "./table";

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

/** How deep it goes; the API is flatter than this. */
const DEPTH_MAX = 5;

/** Draws an object. */
export function Facts(props: { of: unknown; depth?: number }): JSX.Element {
  const depth = props.depth ?? 0;
  const of = isObject(props.of) ? props.of : {};
  const entries = Object.entries(of);
  const plain = entries.filter(([, value]) => isPlain(value));
  const deep = entries.filter(([, value]) => !isPlain(value));
  if (entries.length === 0) return <p class="empty">There is nothing to tell yet.</p>;
  return (
    <>
      {plain.length > 0 && (
        <Pairs of={plain.map(([name, value]) => [words(name), <Value name={name} of={value} />])} />
      )}
      {deep.map(([name, value]) => (
        <div class="facts" key={name}>
          <h3>{words(name)}</h3>
          {depth >= DEPTH_MAX ? <Say text={JSON.stringify(value)} /> : deeper(name, value, depth)}
        </div>
      ))}
    </>
  );
}

function deeper(name: string, value: Json, depth: number): ComponentChildren {
  if (!Array.isArray(value)) return <Facts of={value} depth={depth + 1} />;
  if (value.length === 0) return <p class="empty">none</p>;
  if (!value.every(isObject)) {
    return (
      <ul>
        {value.map((one, index) => (
          <li key={index}>
            <Value name={name} of={one} />
          </li>
        ))}
      </ul>
    );
  }
  const heads = [...new Set(value.flatMap((row) => Object.keys(row)))];
  return (
    <Table<JsonObject>
      label={words(name)}
      rows={value}
      keyOf={(row) => value.indexOf(row)}
      empty="none"
      columns={heads.map((head) => ({
        head: words(head),
        isNumber: value.every((row) => row[head] === undefined || typeof row[head] === "number"),
        by: (row) => {
          const cell = row[head];
          return typeof cell === "number" || typeof cell === "string" ? cell : null;
        },
        cell: (row) => <Value name={head} of={row[head] ?? null} />,
      }))}
    />
  );
}

/** One value, by the unit its name tells. */
export function Value(props: { name: string; of: Json | undefined }): JSX.Element {
  const { of } = props;
  if (of === null || of === undefined) return <>–</>;
  if (typeof of === "number") return <>{byName(props.name, of)}</>;
  if (typeof of === "boolean") return <>{of ? "yes" : "no"}</>;
  if (typeof of === "string") return <Say text={of} />;
  if (Array.isArray(of) && of.every(isPlain)) {
    return (
      <>
        {of.map((one, index) => (
          <span key={index}>
            {index > 0 && ", "}
            <Value name={props.name} of={one} />
          </span>
        ))}
      </>
    );
  }
  return <Say text={JSON.stringify(of)} />;
}

function isPlain(value: Json): boolean {
  return value === null || typeof value !== "object";
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// A number of the moment with its last two minutes, leading to the page that tells more.
import type { ComponentChildren, JSX } from "preact";
import { Spark } from "../chart/spark";

/** One tile. */
export interface TileProps {
  name: string;
  value: string;
  more?: ComponentChildren;
  href: string;
  values?: (number | null)[];
  colour?: string;
  topMin?: number;
  level?: "warning" | "bad" | undefined;
}

/** Draws it. The whole tile is the link. */
export function Tile(props: TileProps): JSX.Element {
  return (
    <a class={`tile ${props.level ?? ""}`} href={props.href}>
      <span class="tile-name">{props.name}</span>
      <span class="tile-value">{props.value}</span>
      <span class="tile-more">{props.more}</span>
      {props.values && (
        <Spark
          values={props.values}
          colour={props.colour ?? "line-1"}
          label={`${props.name}, the last two minutes`}
          topMin={props.topMin ?? 0}
        />
      )}
    </a>
  );
}

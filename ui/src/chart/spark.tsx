// A small line of the last two minutes, for tiles. Drawn as SVG: no script runs per point later.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

const WIDTH = 120;
const HEIGHT = 28;

/** Draws values from left to right; gaps where nothing was recorded. */
export function Spark(props: {
  values: (number | null)[];
  colour: string;
  /** What the line shows, for who cannot see it. */
  label: string;
  /** The least top of the scale, so that noise about nothing looks like nothing. */
  topMin?: number;
}): JSX.Element {
  const { line, area } = useMemo(
    () => paths(props.values, props.topMin ?? 0),
    [props.values, props.topMin],
  );
  return (
    <svg
      class={`spark ${props.colour}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={props.label}
    >
      <path class="area" d={area} />
      <path class="line" d={line} vector-effect="non-scaling-stroke" />
    </svg>
  );
}

/** The line and the area below it, as SVG paths. */
export function paths(values: (number | null)[], topMin: number): { line: string; area: string } {
  const top = Math.max(topMin, ...values.map((value) => value ?? 0)) || 1;
  const x = (index: number): number => (index / Math.max(1, values.length - 1)) * WIDTH;
  const y = (value: number): number => HEIGHT - 1.5 - (value / top) * (HEIGHT - 4);
  let line = "";
  let area = "";
  let from = -1;
  const close = (end: number): void => {
    if (from >= 0) area += `L${cut(x(end))} ${HEIGHT}L${cut(x(from))} ${HEIGHT}Z`;
    from = -1;
  };
  values.forEach((value, index) => {
    if (value === null || !Number.isFinite(value)) return close(index - 1);
    const point = `${from < 0 ? "M" : "L"}${cut(x(index))} ${cut(y(value))}`;
    line += point;
    area += point;
    if (from < 0) from = index;
  });
  close(values.length - 1);
  return { line, area };
}

function cut(value: number): number {
  return Math.round(value * 10) / 10;
}

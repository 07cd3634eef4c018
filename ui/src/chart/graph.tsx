// A chart over time: uPlot drawn into a canvas, with a legend of ours. Dragging chooses a stretch.
import type { JSX } from "preact";
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "../theme";
import { clock } from "../text/format";
import type { Stretch } from "./series";

/** One line of a chart. */
export interface GraphLine {
  label: string;
  values: (number | null)[];
  /** A colour of the stylesheet: `--line-1`. */
  colour: string;
  isFilled?: boolean;
}

/** A chart. Those with the same `cursor` show the same moment. */
export interface GraphProps {
  title: string;
  times: number[];
  lines: GraphLine[];
  stretch: Stretch;
  format(value: number | null): string;
  /** Counted by 1024, so that the axis is round in KiB and MiB. */
  isBinary?: boolean;
  cursor: Signal<number | null>;
  onChoose(stretch: Stretch): void;
}

const HEIGHT = 132;

/** Steps of an axis of bytes: powers of two, up to half a PiB. */
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** Draws the chart and its legend. */
export function Graph(props: GraphProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  const isReady = useSignal(false);
  latest.current = props;
  const shape = props.lines.map((line) => line.label).join();
  useEffect(() => {
    const element = box.current!;
    const made = new uPlot(options(latest, element.clientWidth), data(latest.current), element);
    plot.current = made;
    isReady.value = true;
    const watcher = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, theme.value]);
  useEffect(() => plot.current?.setData(data(props)), [props.times, props.lines]);
  useEffect(
    () => plot.current?.setScale("x", { min: props.stretch.from, max: props.stretch.to }),
    [props.stretch.from, props.stretch.to, props.times],
  );
  return (
    <figure class="graph">
      <Legend {...props} />
      <div ref={box} class="canvas" aria-hidden="true" />
    </figure>
  );
}

function Legend(props: GraphProps): JSX.Element {
  const chosen = props.cursor.value;
  const at = chosen ?? lastKnown(props);
  return (
    <figcaption>
      <strong>{props.title}</strong>
      {props.lines.map((line) => (
        <span key={line.label}>
          <span class={`swatch ${line.colour.replace("--", "")}`} aria-hidden="true" />
          {line.label} <b>{props.format(line.values[at] ?? null)}</b>
        </span>
      ))}
      {chosen !== null && props.times[chosen] !== undefined && (
        <span class="when">{clock(props.times[chosen]! * 1000)}</span>
      )}
    </figcaption>
  );
}

function lastKnown(props: GraphProps): number {
  const values = props.lines[0]?.values ?? [];
  for (let at = values.length - 1; at >= 0; at -= 1) if (values[at] !== null) return at;
  return -1;
}

function data(props: GraphProps): uPlot.AlignedData {
  return [props.times, ...props.lines.map((line) => line.values)];
}

function options(latest: { current: GraphProps }, width: number): uPlot.Options {
  const grid = { stroke: colourOf("--edge"), width: 1 };
  const text = { stroke: colourOf("--quiet"), font: "11px system-ui", ticks: grid, grid };
  return {
    width: Math.max(width, 100),
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: {
      sync: { key: "activity" },
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
    },
    scales: {
      x: { time: true },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      { ...text, size: 26, space: 64, values: timeLabels },
      {
        ...text,
        size: 72,
        space: 30,
        ...(latest.current.isBinary ? { incrs: POWERS } : {}),
        values: (_plot, splits) =>
          splits.map((value) => (value === 0 ? "0" : latest.current.format(value))),
      },
    ],
    series: [
      {},
      ...latest.current.lines.map((line) => ({
        label: line.label,
        stroke: colourOf(line.colour),
        width: 1.5,
        points: { show: false },
        ...(line.isFilled
          ? { fill: `color-mix(in srgb, ${colourOf(line.colour)} 18%, transparent)` }
          : {}),
      })),
    ],
    hooks: {
      setCursor: [
        (plot) => {
          latest.current.cursor.value = plot.cursor.idx ?? null;
        },
      ],
      setSelect: [
        (plot) => {
          if (plot.select.width < 4) return;
          const from = plot.posToVal(plot.select.left, "x");
          const to = plot.posToVal(plot.select.left + plot.select.width, "x");
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          latest.current.onChoose({ from, to });
        },
      ],
    },
  };
}

/** Hours and minutes; seconds when near, days when far. */
function timeLabels(
  _plot: uPlot,
  splits: number[],
  _axis: number,
  _space: number,
  step: number,
): string[] {
  return splits.map((split) => {
    const at = new Date(split * 1000);
    const two = (value: number): string => String(value).padStart(2, "0");
    const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
    if (step < 60) return `${time}:${two(at.getSeconds())}`;
    const isMidnight = at.getHours() === 0 && at.getMinutes() === 0;
    return step >= 86_400 || isMidnight ? `${two(at.getMonth() + 1)}-${two(at.getDate())}` : time;
  });
}

/** A colour of the stylesheet as the canvas wants it. */
function colourOf(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

// A request's time as bars: one row for each phase, and all of them in one small bar for tables.
import type { JSX } from "preact";
import type { Request } from "../api/answers";
import { micros, percent } from "../text/format";
import { axisSteps, life, longest } from "./phases";

/** The whole life of one request. */
export function Waterfall(props: { request: Request }): JSX.Element {
  const of = life(props.request);
  if (of.total_us === 0) return <p class="empty">No time was measured for this request.</p>;
  const at = (us: number): string => `${((us / of.total_us) * 100).toFixed(3)}%`;
  const most = longest(of);
  return (
    <div class="waterfall">
      <table aria-label="Where the time went">
        <thead>
          <tr>
            <th scope="col">phase</th>
            <th scope="col" class="number">
              time
            </th>
            <th scope="col" class="number">
              share
            </th>
            <th scope="col" class="lane">
              <span class="unseen">when</span>
              <span class="axis" aria-hidden="true">
                {axisSteps(of.total_us, 4).map((step) => (
                  <span key={step} class="tick" style={{ left: at(step) }}>
                    {micros(step)}
                  </span>
                ))}
              </span>
            </th>
          </tr>
        </thead>
        <tbody>
          {of.phases.map((phase) => (
            <tr key={phase.name} class={phase === most ? "most" : ""}>
              <th scope="row">
                <span class={`swatch ${phase.name}`} aria-hidden="true" />
                {phase.label}
              </th>
              <td class="number">{micros(phase.length_us)}</td>
              <td class="number">{percent(phase.length_us / of.total_us)}</td>
              <td class="lane">
                <span
                  class={`bar ${phase.name}`}
                  style={{ left: at(phase.begin_us), width: at(phase.length_us) }}
                />
                {of.firstByte_us !== null && (
                  <span class="first-byte" style={{ left: at(of.firstByte_us) }} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">the whole</th>
            <td class="number">{micros(of.total_us)}</td>
            <td />
            <td />
          </tr>
        </tfoot>
      </table>
      {of.firstByte_us !== null && (
        <p class="note">
          <span class="first-byte-key" aria-hidden="true" /> first byte of the answer after{" "}
          {micros(of.firstByte_us)}
        </p>
      )}
      {of.doOverlap && (
        <p class="note">
          The phases add up to more than the whole: some went on at the same time, and their order
          is a guess.
        </p>
      )}
    </div>
  );
}

/** The phases in one bar, as long as `of_us` is to the longest in its table. */
export function Split(props: { request: Request; longest_us: number }): JSX.Element {
  const of = life(props.request);
  const scale = props.longest_us > 0 ? 100 / props.longest_us : 0;
  const words = of.phases.map((phase) => `${phase.label} ${micros(phase.length_us)}`).join(", ");
  return (
    <svg class="split" width="100%" height="8" role="img" aria-label={words || "no time"}>
      <title>{words}</title>
      {of.phases.map((phase) => (
        <rect
          key={phase.name}
          class={phase.name}
          x={`${(phase.begin_us * scale).toFixed(2)}%`}
          width={`${Math.max(phase.length_us * scale, 0.3).toFixed(2)}%`}
          y="0"
          height="8"
        />
      ))}
    </svg>
  );
}

// One request's time cut into phases, and where each lies in the whole. The record has sums, not
// moments; the order is the one in which a request goes through them.
import type { Request } from "../api/answers";

/** What a request spends time on. */
export type PhaseName = "body" | "queue" | "start" | "program" | "disk" | "server" | "take";

/** A stretch of a request's time, in microseconds from its start. */
export interface Phase {
  name: PhaseName;
  label: string;
  begin_us: number;
  length_us: number;
}

/** A request's time, laid out. */
export interface Life {
  total_us: number;
  phases: Phase[];
  /** When the head of the answer was sent; null where that is not known. */
  firstByte_us: number | null;
  /** Phases add up to more than the whole: some of them went on at the same time. */
  doOverlap: boolean;
}

/** What each phase is called. */
export const LABELS: Record<PhaseName, string> = {
  body: "client sends its body",
  queue: "waits for a worker",
  start: "program starts",
  program: "program works",
  disk: "waits for the disk",
  server: "server",
  take: "client takes the answer",
};

type Times = Partial<
  Pick<
    Request,
    | "total_us"
    | "age_us"
    | "client_body_us"
    | "queue_us"
    | "start_us"
    | "program_us"
    | "disk_wait_us"
    | "server_us"
    | "client_take_us"
    | "first_byte_us"
  >
>;

/** Lays a request's time out. Phases of no length are left out. */
export function life(times: Times): Life {
  const total = positive(times.total_us ?? times.age_us);
  const program = positive(times.program_us);
  const start = Math.min(positive(times.start_us), program);
  const lengths: Record<PhaseName, number> = {
    body: positive(times.client_body_us),
    queue: positive(times.queue_us),
    start,
    program: program - start,
    disk: positive(times.disk_wait_us),
    server: 0,
    take: positive(times.client_take_us),
  };
  const known = sum(lengths);
  // What nobody else accounts for is the server's; so the phases fill the whole.
  lengths.server = Math.max(0, total - known);
  const phases: Phase[] = [];
  let cursor = 0;
  for (const name of Object.keys(lengths) as PhaseName[]) {
    const length = Math.min(lengths[name], total);
    if (length <= 0) continue;
    const begin = Math.min(cursor, total - length);
    phases.push({ name, label: LABELS[name], begin_us: begin, length_us: length });
    cursor = begin + length;
  }
  const first = times.first_byte_us;
  return {
    total_us: total,
    phases,
    firstByte_us: first && first > 0 ? Math.min(first, total) : null,
    doOverlap: known > total * 1.005 + 50,
  };
}

/** The phase that took longest; null for a request without any time. */
export function longest(of: Life): Phase | null {
  return of.phases.reduce<Phase | null>(
    (best, phase) => (best === null || phase.length_us > best.length_us ? phase : best),
    null,
  );
}

/** Steps of an axis from 0 to `total_us`: round numbers, at most `most` of them. */
export function axisSteps(total_us: number, most = 6): number[] {
  if (!(total_us > 0)) return [0];
  const raw = total_us / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= raw)!;
  const steps: number[] = [];
  for (let at = 0; at <= total_us * 1.0001; at += step) steps.push(at);
  return steps;
}

function positive(value: number | null | undefined): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

function sum(lengths: Record<PhaseName, number>): number {
  return Object.values(lengths).reduce((all, one) => all + one, 0);
}

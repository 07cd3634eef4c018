// How are programs, their workers and scripts doing, and what would one rung up the ladder save? And
// having workers recycled, stopped, or tell their stack.
import type { ComponentChildren, JSX } from "preact";
import { act } from "../api/client";
import { type Deed, useDeed, useLive } from "../api/hooks";
import type {
  AllPrograms,
  OfferReport,
  Program,
  ProgramVisits,
  ProgramWorker,
  RunReport,
  ScriptUse,
  ServiceReport,
  SpanUse,
  UpstreamReport,
  WorkerRequest,
} from "../api/answers";
import { link } from "../address";
import { Action } from "../parts/act";
import { Facts } from "../parts/facts";
import { Notice, Outcome, Page, Pairs, Panel, Waiting } from "../parts/page";
import { Code, Say } from "../parts/say";
import { Table } from "../parts/table";
import { NOTHING, bytes, clock, count, many, micros, rate, seconds } from "../text/format";

/** The page. */
export function Programs(): JSX.Element {
  const live = useLive<AllPrograms>("programs", "v1/programs");
  const deed = useDeed();
  const programs = live.value?.programs ?? [];
  const visits = live.value?.visits ?? [];
  const upstreams = live.value?.upstreams ?? [];
  return (
    <Page
      title="Programs"
      lead="Programs that the server starts, the processes they run as, and other servers behind routes."
    >
      <Waiting asked={live} what="the programs" />
      <Outcome deed={deed} />
      {live.value && programs.length + visits.length + upstreams.length === 0 && (
        <p class="empty">No route of the config runs a program.</p>
      )}
      {programs.map((program) =>
        program.scripts ? (
          <Route
            key={`${program.site} ${program.name}`}
            of={program}
            scripts={program.scripts}
            since={live.value?.today_since_unix_ms}
          />
        ) : (
          <One key={`${program.site} ${program.route} ${program.name}`} of={program} deed={deed} />
        ),
      )}
      {visits.map((of, index) => (
        <Visits key={`${of.name} ${index}`} of={of} deed={deed} />
      ))}
      {upstreams.map((upstream) => (
        <Upstream key={upstream.name} of={upstream} deed={deed} />
      ))}
      {(live.value?.offers.length ?? 0) > 0 && <Offers of={live.value?.offers ?? []} />}
      {(live.value?.hosts.length ?? 0) > 0 && (
        <Panel title="Warm hosts">
          <Facts of={{ hosts: live.value?.hosts }} />
        </Panel>
      )}
    </Page>
  );
}

/** A route that starts or forks a process for each request. */
function Route(props: {
  of: Program;
  scripts: ScriptUse[];
  since: number | undefined;
}): JSX.Element {
  const { of, scripts } = props;
  const others = of.requests_others ?? 0;
  return (
    <Panel title={<Say text={of.name} />}>
      {of.advice && (
        <Notice level="notice">
          <Say text={of.advice} />
        </Notice>
      )}
      <Pairs
        of={[
          ["runs", of.runs ? <Code text={of.runs} /> : null],
          ["kind", of.handler === "warm" ? "forked for each request" : "started for each request"],
          ...places(of),
          ["running", `${count(of.busy)} of ${count(of.max)}`],
          ["queued", of.queued == null ? null : many(of.queued, "request")],
          ["today", `${many(of.requests_today, "request")}, ${rate(of.rate_today_s)}`],
          ["counted since", clock(props.since)],
          ...usedLately(of),
        ]}
      />
      <Scripts of={scripts} name={of.name} />
      {(of.scripts_more ?? 0) > 0 && (
        <p class="note">{many(of.scripts_more, "script")} that used less are not listed.</p>
      )}
      {others > 0 && (
        <p class="note">{many(others, "request")} went to more scripts than are told apart.</p>
      )}
    </Panel>
  );
}

/** A program that has a process for each visitor. */
function Visits(props: { of: ProgramVisits; deed: Deed }): JSX.Element {
  const { of, deed } = props;
  const more = of.count - of.visits.length;
  return (
    <Panel title={<Say text={of.name} />}>
      <Pairs
        of={[
          ["kind", "stays for one visitor"],
          ["visits", `${count(of.count)} of ${count(of.max)}`],
          ["most so far", count(of.peak)],
          ["kept by", of.server_pid == null ? "" : `server ${of.server_pid}, of before an upgrade`],
        ]}
      />
      <Table
        label={`Visits of ${of.name}`}
        rows={of.visits}
        keyOf={(row) => row.number}
        empty="Nobody visits it."
        columns={[
          { head: "visit", isNumber: true, by: (row) => row.number, cell: (row) => row.number },
          { head: "handle", cell: (row) => <Code text={row.handle} /> },
          { head: "client", by: (row) => row.client, cell: (row) => <Code text={row.client} /> },
          { head: "state", by: (row) => row.state, cell: (row) => <Say text={row.state} /> },
          { head: "process", isNumber: true, isWide: true, cell: (row) => row.pid ?? NOTHING },
          {
            head: "age",
            isNumber: true,
            by: (row) => row.age_s,
            cell: (row) => seconds(row.age_s),
          },
          {
            head: "idle",
            isNumber: true,
            by: (row) => row.idle_s ?? 0,
            cell: (row) => (row.idle_s == null ? NOTHING : seconds(row.idle_s)),
          },
          {
            head: "answers",
            isNumber: true,
            by: (row) => row.answers,
            cell: (row) => count(row.answers),
          },
          {
            head: "memory",
            isNumber: true,
            by: (row) => row.memory_bytes,
            cell: (row) => bytes(row.memory_bytes),
          },
          {
            head: "",
            cell: (row) => (
              <Action
                label="End"
                on={`visit ${row.number}`}
                isDangerous
                confirm="Its process finishes what it has and ends. What the visitor did and did not commit is lost."
                isOff={deed.isRunning}
                onDo={() => void deed.run(() => act("v1/visits/end", { number: row.number }))}
              />
            ),
          },
        ]}
      />
      {more > 0 && <p class="note">{many(more, "later visit")} are not listed.</p>}
    </Panel>
  );
}

/** Programs that hobs of other machines may ask for. */
function Offers(props: { of: OfferReport[] }): JSX.Element {
  return (
    <Panel title="Offered to other machines">
      <Table
        label="Offers"
        rows={props.of}
        keyOf={(row) => row.program}
        empty="Nothing is offered."
        columns={[
          { head: "program", by: (row) => row.program, cell: (row) => <Code text={row.program} /> },
          { head: "route", by: (row) => row.route, cell: (row) => <Code text={row.route} /> },
          { head: "to", doesWrap: true, cell: (row) => <Code text={row.to.join(", ")} /> },
          {
            head: "requests",
            isNumber: true,
            by: (row) => row.requests,
            cell: (row) => count(row.requests),
          },
        ]}
      />
    </Panel>
  );
}

/** Servers and programs that answer for a route, and how the one is that was started for that. */
function Upstream(props: { of: UpstreamReport; deed: Deed }): JSX.Element {
  const { of, deed } = props;
  const run = of.members.find((member) => member.run)?.run;
  return (
    <Panel
      title={<Say text={of.name} />}
      tools={
        run && (
          <Action
            label="Recycle"
            on={run.name}
            confirm="Fresh processes are started, and those of now end with what they are doing. No request fails."
            isOff={deed.isRunning}
            onDo={() => void deed.run(() => act("v1/programs/recycle", { name: run.name }))}
          />
        )
      }
    >
      {run && <Started of={run} />}
      {of.services.map((service) => (
        <Found key={service.name} of={service} />
      ))}
      <Members of={of} deed={deed} />
    </Panel>
  );
}

/** A program that was started to be asked. */
function Started(props: { of: RunReport }): JSX.Element {
  const { of } = props;
  return (
    <>
      {of.last_failure && (
        <Notice level={of.state === "failed" ? "bad" : "notice"}>
          <Say text={of.last_failure} lines />
        </Notice>
      )}
      <Pairs
        of={[
          ["runs", <Code key="runs" text={of.program} />],
          ["state", of.state],
          ["children", count(of.children)],
          ["processes", of.pids.join(", ")],
          ["started", many(of.starts, "time")],
          ["restarts", count(of.deaths)],
        ]}
      />
    </>
  );
}

/** A service whose servers are members. */
function Found(props: { of: ServiceReport }): JSX.Element {
  const { of } = props;
  return (
    <>
      {of.why && (
        <Notice level={of.servers === 0 ? "bad" : "notice"}>
          <Say text={of.why} />
        </Notice>
      )}
      <Pairs
        of={[
          ["service", <Code key="service" text={of.name} />],
          ["servers", count(of.servers)],
          ["left out", count(of.surplus)],
          ["looked up again in", seconds(of.again_in_s)],
        ]}
      />
    </>
  );
}

/** Other people's servers that answer for a route. */
function Members(props: { of: UpstreamReport; deed: Deed }): JSX.Element {
  const { of, deed } = props;
  const todo = (what: string, member: string) => () =>
    void deed.run(() => act(`v1/upstreams/${what}`, { name: of.name, member }));
  return (
    <Table
      label={`Members of ${of.name}`}
      rows={of.members}
      keyOf={(row) => row.address}
      empty="It has no members."
      columns={[
        { head: "member", by: (row) => row.address, cell: (row) => <Code text={row.address} /> },
        {
          head: "state",
          by: (row) => row.state,
          cell: (row) => (
            <span title={row.why ?? undefined}>
              {row.out_for_s == null
                ? row.state
                : `${row.state}, tried in ${seconds(row.out_for_s)}`}
            </span>
          ),
        },
        {
          head: "weight",
          isNumber: true,
          isWide: true,
          by: (row) => row.weight,
          cell: (row) => (row.is_backup ? `${count(row.weight)}, backup` : count(row.weight)),
        },
        {
          head: "requests",
          isNumber: true,
          by: (row) => row.requests,
          cell: (row) => count(row.requests),
        },
        {
          head: "resting",
          isNumber: true,
          by: (row) => row.resting,
          cell: (row) => count(row.resting),
        },
        {
          head: "latency",
          isNumber: true,
          by: (row) => row.latency_ms ?? 0,
          cell: (row) => (row.latency_ms == null ? NOTHING : micros(row.latency_ms * 1000)),
        },
        {
          head: "answers",
          isNumber: true,
          by: (row) => row.answers,
          cell: (row) => count(row.answers),
        },
        {
          head: "failures",
          isNumber: true,
          by: (row) => row.failures,
          cell: (row) => count(row.failures),
        },
        {
          head: "",
          cell: (row) =>
            row.state === "draining" ? (
              <Action
                label="Resume"
                on={row.address}
                isOff={deed.isRunning}
                onDo={todo("resume", row.address)}
              />
            ) : (
              <Action
                label="Drain"
                on={row.address}
                confirm="It gets no new requests; those it has are finished, and clients with a cookie for it stay."
                isOff={deed.isRunning}
                onDo={todo("drain", row.address)}
              />
            ),
        },
      ]}
    />
  );
}

function Scripts(props: { of: ScriptUse[]; name: string }): JSX.Element {
  return (
    <Table
      label={`Scripts of ${props.name}`}
      rows={props.of}
      keyOf={(row) => row.file}
      sort="-CPU"
      empty="No script has run today."
      columns={[
        {
          head: "script",
          by: (row) => row.file,
          cell: (row) => (
            <span title={row.file}>
              <Code text={row.file.split("/").pop() ?? row.file} />
            </span>
          ),
        },
        {
          head: "interpreter",
          isWide: true,
          by: (row) => row.interpreter,
          cell: (row) => <Say text={row.interpreter ?? NOTHING} />,
        },
        {
          head: "requests",
          isNumber: true,
          by: (row) => row.requests,
          cell: (row) => count(row.requests),
        },
        {
          head: "rate",
          isNumber: true,
          isWide: true,
          by: (row) => row.rate_s,
          cell: (row) => rate(row.rate_s),
        },
        {
          head: "CPU",
          isNumber: true,
          isWide: true,
          by: (row) => row.used_us,
          cell: (row) => micros(row.used_us),
        },
        {
          head: "a request",
          isNumber: true,
          by: (row) => row.cpu_us,
          cell: (row) => micros(row.cpu_us),
        },
        {
          head: "bare start",
          isNumber: true,
          isWide: true,
          by: (row) => row.start_cpu_us,
          cell: (row) => micros(row.start_cpu_us),
        },
        {
          head: "would save",
          isNumber: true,
          by: (row) => row.saves?.cpu_us,
          cell: (row) => micros(row.saves?.cpu_us),
        },
        {
          head: "one rung up",
          isWide: true,
          isMain: true,
          doesWrap: true,
          cell: (row) => <Say text={row.advice ?? row.why_not ?? NOTHING} />,
        },
      ]}
    />
  );
}

/** Where a program answers, and what was asked of it. */
function places(of: Program): [string, ComponentChildren][] {
  return [
    [
      "route",
      of.route ? (
        <a href={link("history", { site: of.site, route: of.route, sort: "slowest" })}>
          <Code text={of.route} />
        </a>
      ) : null,
    ],
    ["site", of.site ? <Say text={of.site} /> : null],
  ];
}

/** CPU time of a request, in the last minute and the last hour. */
function usedLately(of: Program): [string, ComponentChildren][] {
  const told = (used: SpanUse | undefined): string | null =>
    used && used.requests > 0
      ? `${micros(used.request_us)} a request, of ${count(used.requests)}`
      : null;
  return [
    ["CPU, last minute", told(of.cpu?.minute)],
    ["CPU, last hour", told(of.cpu?.hour)],
  ];
}

function One(props: { of: Program; deed: Deed }): JSX.Element {
  const { of, deed } = props;
  const workers = of.workers;
  const todo = (what: string, pid?: number) => () =>
    void deed.run(() =>
      act(`v1/programs/${what}`, { name: of.name, ...(pid === undefined ? {} : { pid }) }),
    );
  return (
    <Panel
      title={<Say text={of.name} />}
      tools={
        <>
          <Action
            label="Recycle"
            on={of.name}
            confirm="Each worker finishes what it is doing and a fresh one takes its place. No request fails."
            isOff={deed.isRunning}
            onDo={todo("recycle")}
          />
          <Action
            label="Stop"
            on={of.name}
            isDangerous
            confirm="All its workers end, and what they are doing fails. The next request starts a new one."
            isOff={deed.isRunning}
            onDo={todo("stop")}
          />
        </>
      }
    >
      {of.advice && (
        <Notice level="notice">
          <Say text={of.advice} />
        </Notice>
      )}
      {of.last_error && (
        <Notice level="bad">
          <Say text={of.last_error} lines />
        </Notice>
      )}
      <Pairs
        of={[
          ["runs", of.runs ? <Code text={of.runs} /> : null],
          ["kind", <Say text={[of.handler, of.carrier].filter(Boolean).join(" over ")} />],
          ...places(of),
          ["workers", `${count(workers.length)} of ${count(of.min)} to ${count(of.max)}`],
          ["busy", of.busy == null ? null : count(of.busy)],
          ["queued", of.queued == null ? null : many(of.queued, "request")],
          ["restarts", of.restarts == null ? null : count(of.restarts)],
          ...usedLately(of),
        ]}
      />
      <Workers of={workers} name={of.name} todo={todo} isOff={deed.isRunning} />
    </Panel>
  );
}

/** The first request that a process has, and how many more. */
function Having(props: { of: WorkerRequest[] }): JSX.Element | null {
  const [first, ...others] = props.of;
  if (!first) return null;
  return (
    <>
      <Code text={first.request} />
      <span class="quiet">
        {` for ${micros(first.ms * 1000)}`}
        {others.length > 0 && `, and ${many(others.length, "other")}`}
      </span>
    </>
  );
}

function Workers(props: {
  of: ProgramWorker[];
  name: string;
  isOff: boolean;
  todo(what: string, pid?: number): () => void;
}): JSX.Element {
  return (
    <Table
      label={`Workers of ${props.name}`}
      rows={props.of}
      keyOf={(row) => row.pid ?? `starting ${props.of.indexOf(row)}`}
      empty="No worker is up; the next request starts one."
      columns={[
        {
          head: "process",
          isNumber: true,
          by: (row) => row.pid,
          cell: (row) => row.pid ?? NOTHING,
        },
        { head: "state", by: (row) => row.state, cell: (row) => <Say text={row.state} /> },
        {
          head: "requests",
          isNumber: true,
          by: (row) => row.requests,
          cell: (row) => count(row.requests),
        },
        { head: "age", isNumber: true, by: (row) => row.age_s, cell: (row) => seconds(row.age_s) },
        {
          head: "memory",
          isNumber: true,
          by: (row) => row.memory_bytes,
          cell: (row) => bytes(row.memory_bytes),
        },
        {
          head: "processor",
          isNumber: true,
          isWide: true,
          by: (row) => row.cpu_us,
          cell: (row) => micros(row.cpu_us),
        },
        {
          head: "running",
          isWide: true,
          cell: (row) => <Having of={row.running} />,
        },
        {
          head: "actions",
          // Without a process id all workers of the program would be meant.
          cell: (row) =>
            row.pid !== null && (
              <span class="row-tools">
                <Action
                  label="Stack"
                  on={`of process ${row.pid}`}
                  confirm="The process is asked where it is in its code. It goes on working; a moment may be lost."
                  isOff={props.isOff}
                  onDo={props.todo("stack", row.pid)}
                />
                <Action
                  label="Recycle"
                  on={`process ${row.pid}`}
                  confirm="It finishes what it is doing; a fresh worker takes its place."
                  isOff={props.isOff}
                  onDo={props.todo("recycle", row.pid)}
                />
                <Action
                  label="Stop"
                  on={`process ${row.pid}`}
                  isDangerous
                  confirm="It ends at once, and what it is doing fails."
                  isOff={props.isOff}
                  onDo={props.todo("stop", row.pid)}
                />
              </span>
            ),
        },
      ]}
    />
  );
}

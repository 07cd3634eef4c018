// Who may what, by the config in force? And would this request be let in? Tried without sending it.
import type { JSX } from "preact";
import { useAsk } from "../api/hooks";
import type {
  Access as Told,
  ExplainedRule,
  Explanation,
  RouteAccess,
  SiteAccess,
} from "../api/answers";
import { link } from "../address";
import { Filters } from "../parts/filters";
import { Notice, Page, Panel, Waiting } from "../parts/page";
import { Code, Say } from "../parts/say";
import { Table } from "../parts/table";
import { go, place } from "../route";
import { many } from "../text/format";
import { SHOWN, TRIED, changed, labelOf, shownSites, triedPath, urlOf } from "./access-query";
import { Explained } from "./explain";

/** The page. */
export function Access(): JSX.Element {
  const query = place.value.query;
  const asked = useAsk<Told>("v1/access");
  const tried = triedPath(query);
  const outcome = useAsk<Explanation>(tried);
  return (
    <Page
      title="Access"
      lead="Who may what, as the config in force says it, and whether a request would be let in."
      tools={
        <button type="button" onClick={asked.again}>
          Refresh
        </button>
      }
    >
      <Panel title="Try">
        <Filters
          label="Try a request"
          fields={TRIED}
          query={{ method: "GET", ...query }}
          apply="Try"
          onApply={(next) => go(link("access", changed(TRIED, query, next)))}
        />
        <p class="lead">
          No password is needed, nothing is run, and nothing counts towards limits and bans.
        </p>
        {tried !== null && <Waiting asked={outcome} what="the outcome" />}
      </Panel>
      {tried !== null && outcome.value && <Verdict of={outcome.value} />}
      <Panel title="Who may what">
        <Filters
          label="Find routes"
          fields={SHOWN}
          query={query}
          apply="Show"
          onApply={(next) => go(link("access", changed(SHOWN, query, next)))}
        />
        <Waiting asked={asked} what="who may what" />
        {asked.value && <Sites of={asked.value} />}
      </Panel>
    </Page>
  );
}

/** What would become of the request, and by which line. */
function Verdict(props: { of: Explanation }): JSX.Element {
  const { verdict, rules, answer } = props.of;
  const why = verdict.rule ? rules.at(-1)?.why : answer.reason;
  const level =
    verdict.outcome === "answered"
      ? "good"
      : verdict.outcome === "refused"
        ? "bad"
        : verdict.outcome === "moved"
          ? "notice"
          : "warning";
  return (
    <div class="verdict">
      <Notice level={level}>
        <strong>
          <Say text={sentence(verdict.text)} />
        </strong>
        {verdict.provided.map((one) => (
          <div key={one}>
            Provided that <Say text={one} />.
          </div>
        ))}
        <div>
          {verdict.rule ? (
            <>
              <Code text={verdict.rule} /> decides
            </>
          ) : (
            <>No rule about clients is in the way</>
          )}
          {verdict.place && (
            <>
              : <Place of={verdict.place} />
            </>
          )}
          {why && (
            <>
              {" – "}
              <Say text={why} />
            </>
          )}
        </div>
      </Notice>
      {rules.length > 0 && <Rules of={rules} />}
      <Explained of={props.of} />
    </div>
  );
}

function Rules(props: { of: ExplainedRule[] }): JSX.Element {
  return (
    <Panel title="Rules that were asked">
      <Table
        label="Rules that were asked"
        rows={props.of}
        keyOf={(row) => props.of.indexOf(row)}
        empty="None."
        columns={[
          { head: "rule", cell: (row) => <Code text={row.rule} /> },
          {
            head: "says",
            cell: (row) => (
              <span class={row.lets_in ? "" : "bad-text"}>
                {row.lets_in ? (row.provided ? "let in, perhaps" : "let in") : "not by this one"}
              </span>
            ),
          },
          { head: "why", isMain: true, doesWrap: true, cell: (row) => <Say text={row.why} /> },
          { head: "line", isWide: true, cell: (row) => <Place of={row.place} /> },
        ]}
      />
    </Panel>
  );
}

/** Every site that is shown, and its routes. */
function Sites(props: { of: Told }): JSX.Element {
  const { query } = place.value;
  const { sites, bans, more } = props.of;
  const shown = shownSites(sites, query);
  const [all, found] = [routesOf(sites), routesOf(shown)];
  return (
    <>
      <p class="lead" role="status">
        {found === all ? many(all, "route") : `${found} of ${many(all, "route")}`}
        {more && ", and the server has more than it tells at once: choose a site in its API"}.
      </p>
      {shown.length === 0 && <p class="empty">No route is as you look for it.</p>}
      {shown.map((site) => (
        <section key={site.place} class="site-access">
          <h3>
            <Say text={nameOf(site, sites.length)} />{" "}
            <span class="quiet">
              <Say text={[site.place, ...traits(site)].join(" · ")} />
            </span>
          </h3>
          <Routes site={site} name={nameOf(site, sites.length)} />
        </section>
      ))}
      {bans.length > 0 && (
        <section class="site-access">
          <h3>
            Bans <span class="quiet">on every site</span>
          </h3>
          <ul class="plain">
            {bans.map((ban) => (
              <li key={ban.name}>
                <Code text={ban.name} />: <Say text={ban.text} /> (<Place of={ban.place} />
                ). <a href={link("bans")}>Who is banned</a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function Routes(props: { site: SiteAccess; name: string }): JSX.Element {
  const { site } = props;
  const { query } = place.value;
  return (
    <Table<RouteAccess>
      label={`Who may what: ${props.name}`}
      rows={site.routes}
      keyOf={(row) => row.index}
      empty="The site has no route."
      columns={[
        {
          head: "route",
          by: (row) => row.path,
          doesWrap: true,
          cell: (row) => {
            const url = urlOf(site, row);
            const label = <Code text={labelOf(row)} />;
            return url === null ? (
              label
            ) : (
              <a
                href={link("access", changed(TRIED, query, { ...tryAs(query), url }))}
                title="Try it"
              >
                {label}
              </a>
            );
          },
        },
        {
          head: "who may",
          isMain: true,
          doesWrap: true,
          by: (row) => row.who,
          cell: (row) => (
            <span class={row.open ? "quiet" : ""}>
              <Say text={row.who} />
            </span>
          ),
        },
        {
          head: "signs in by",
          isWide: true,
          by: (row) => row.sign_in?.kind ?? "",
          cell: (row) => <Say text={row.sign_in?.kind ?? ""} />,
        },
        {
          head: "limits",
          isWide: true,
          doesWrap: true,
          by: (row) => row.limits.length,
          cell: (row) =>
            row.limits.map((limit) => (
              <div key={limit.limit} title={limit.place ?? undefined}>
                <Code text={limit.limit} />: <Say text={limit.text} />
              </div>
            )),
        },
        {
          head: "handler",
          isWide: true,
          by: (row) => row.handler,
          cell: (row) => <Say text={row.handler} />,
        },
        {
          head: "line",
          isWide: true,
          cell: (row) =>
            linesOf(row).map((one) => (
              <div key={one}>
                <Place of={one} />
              </div>
            )),
        },
      ]}
    />
  );
}

/** A line of the config; the page of the config shows the files. */
function Place(props: { of: string | null | undefined }): JSX.Element {
  return props.of ? (
    <a href={link("config")}>
      <Code text={props.of} />
    </a>
  ) : (
    <span class="quiet">said by an operator</span>
  );
}

function linesOf(row: RouteAccess): string[] {
  const all = [row.access?.place, row.sign_in?.place].filter((one) => typeof one === "string");
  return all.length > 0 ? [...new Set(all)] : [row.place];
}

/** Who is tried stays when another route is. */
function tryAs(query: Record<string, string>): Record<string, string> {
  const kept = ["method", "user", "groups", "from"].map((key) => [key, query[key] ?? ""] as const);
  return Object.fromEntries(kept.filter(([, value]) => value !== ""));
}

/** What a site is called; the one without names is everybody else's. */
function nameOf(site: SiteAccess, count: number): string {
  if (site.names.length > 0) return site.names.join(", ");
  return count === 1 ? "Every host" : "Every other host";
}

function traits(site: SiteAccess): string[] {
  return [
    site.down && "down for maintenance",
    site.https_only && "only over TLS",
    site.requires_certificate && "only with a certificate",
  ].filter((one) => typeof one === "string");
}

function routesOf(sites: SiteAccess[]): number {
  return sites.reduce((sum, site) => sum + site.routes.length, 0);
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Which certificates are in use, and until when?
import type { JSX } from "preact";
import { useAsk } from "../api/hooks";
import type { Certificate, Certificates as Told } from "../api/answers";
import { Facts } from "../parts/facts";
import { Notice, Page, Panel, Waiting } from "../parts/page";
import { Say } from "../parts/say";
import { Table } from "../parts/table";
import { count, day, many } from "../text/format";

/** From how many days left on a certificate is a worry, and a fault. */
const DAYS_WARNING = 21;
const DAYS_BAD = 7;

/** The page. */
export function Certificates(): JSX.Element {
  const asked = useAsk<Told>("v1/certificates");
  const rows = asked.value?.certificates ?? [];
  const soon = rows.filter((row) => row.days_left < DAYS_WARNING);
  return (
    <Page
      title="Certificates"
      tools={
        <button type="button" onClick={asked.again}>
          Refresh
        </button>
      }
    >
      <Waiting asked={asked} what="the certificates" />
      {soon.map((row) => (
        <Notice key={namesOf(row)} level={row.days_left < DAYS_BAD ? "bad" : "warning"}>
          The certificate of <Say text={namesOf(row)} />{" "}
          {row.days_left < 0 ? "has expired" : `expires in ${many(row.days_left, "day")}`}.
        </Notice>
      ))}
      {asked.value && (
        <Table
          label="Certificates"
          rows={rows}
          keyOf={(row) => `${namesOf(row)} ${row.listener} ${row.not_after_unix_s}`}
          empty="No certificate is in use: this server listens in clear text only."
          sort="days left"
          columns={[
            {
              head: "names",
              isMain: true,
              by: namesOf,
              cell: (row) => <Say text={namesOf(row)} />,
            },
            {
              head: "days left",
              isNumber: true,
              by: (row) => row.days_left,
              cell: (row) => count(row.days_left),
            },
            { head: "state", by: (row) => row.state, cell: (row) => <Say text={row.state} /> },
            {
              head: "valid until",
              by: (row) => row.not_after_unix_s,
              cell: (row) => day(row.not_after_unix_s * 1000),
            },
            {
              head: "valid from",
              isWide: true,
              by: (row) => row.not_before_unix_s,
              cell: (row) => day(row.not_before_unix_s * 1000),
            },
            {
              head: "issuer",
              doesWrap: true,
              isWide: true,
              by: (row) => row.issuer,
              cell: (row) => <Say text={row.issuer} />,
            },
            { head: "key", doesWrap: true, isWide: true, cell: (row) => <Say text={row.key} /> },
            { head: "listener", isWide: true, cell: (row) => <Say text={row.listener} /> },
            {
              head: "source",
              doesWrap: true,
              isWide: true,
              cell: (row) => <Say text={row.source} />,
            },
          ]}
        />
      )}
      {(asked.value?.orders.length ?? 0) > 0 && (
        <Panel title="Orders at an authority">
          <Facts of={{ orders: asked.value?.orders }} />
        </Panel>
      )}
    </Page>
  );
}

function namesOf(row: Certificate): string {
  return row.names.join(", ");
}

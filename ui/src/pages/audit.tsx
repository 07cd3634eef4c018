// Who did what here?
import type { JSX } from "preact";
import { useAsk } from "../api/hooks";
import type { AuditLog } from "../api/answers";
import { Page, Waiting } from "../parts/page";
import { Say } from "../parts/say";
import { Table } from "../parts/table";
import { clock, day } from "../text/format";

/** The page. */
export function Audit(): JSX.Element {
  const asked = useAsk<AuditLog>("v1/audit");
  return (
    <Page
      title="Audit"
      lead="Every login and every action, the newest first."
      tools={
        <button type="button" onClick={asked.again}>
          Refresh
        </button>
      }
    >
      <Waiting asked={asked} what="the audit log" />
      {asked.value && (
        <Table
          label="Audit log"
          rows={asked.value.entries}
          keyOf={(row) => asked.value!.entries.indexOf(row)}
          empty="Nobody has done anything yet."
          sort="-when"
          columns={[
            {
              head: "when",
              by: (row) => row.unix_ms,
              cell: (row) => `${day(row.unix_ms)} ${clock(row.unix_ms, row.unix_ms)}`,
            },
            { head: "who", by: (row) => row.who, cell: (row) => <Say text={row.who} /> },
            {
              head: "from",
              isWide: true,
              by: (row) => row.from,
              cell: (row) => <Say text={row.from} />,
            },
            {
              head: "action",
              isMain: true,
              by: (row) => row.action,
              cell: (row) => <Say text={row.action} />,
            },
            {
              head: "outcome",
              by: (row) => row.outcome,
              cell: (row) => <Say text={row.outcome} />,
            },
          ]}
        />
      )}
    </Page>
  );
}

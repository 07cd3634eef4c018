// What does the config say, and what would a change do? An edit is checked and compared before it is
// applied; the one before can be had back.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { act, whyNot } from "../api/client";
import { useAsk, useDeed } from "../api/hooks";
import type {
  ConfigChange,
  ConfigDifference,
  ConfigFault,
  ConfigFile,
  ConfigFiles,
  ConfigVerdict,
} from "../api/answers";
import { link } from "../address";
import { Action } from "../parts/act";
import { Notice, Outcome, Page, Panel, Waiting } from "../parts/page";
import { Code, Say } from "../parts/say";
import { go, place } from "../route";
import { count, many } from "../text/format";
import { save } from "../text/save";

/** What a new text is saved as, and is called in the command. */
const NEW_FILE = "new.toml";

/** The page. */
export function ConfigPage(): JSX.Element {
  const asked = useAsk<ConfigFiles>("v1/config");
  const files = asked.value?.files ?? [];
  const path = place.value.rest || files[0]?.path || "";
  const file = files.find((one) => one.path === path) ?? files[0];
  const deed = useDeed();
  return (
    <Page
      title="Config"
      lead={
        asked.value && `Generation ${count(asked.value.generation)}, ${many(files.length, "file")}.`
      }
      tools={
        <>
          <Action
            label="Reload"
            confirm="The config is read again as it stands on disk, and served by if nothing is wrong with it. No connection breaks."
            isOff={deed.isRunning}
            onDo={() => void deed.run(() => act("v1/reload")).then(asked.again)}
          />
          <Action
            label="Roll back"
            isDangerous
            confirm="The config from before the last apply is put back and served by."
            isOff={
              deed.isRunning ||
              asked.value?.editable === false ||
              asked.value?.can_roll_back === false
            }
            offReason={asked.value?.why_not ?? "nothing has been applied from here yet"}
            onDo={() => void deed.run(() => act("v1/config/rollback")).then(asked.again)}
          />
        </>
      }
    >
      <Waiting asked={asked} what="the config" />
      <Outcome deed={deed} />
      {files.length > 1 && (
        <label class="field">
          <span>File</span>
          <select
            value={file?.path}
            onChange={(event) => go(link("config", {}, event.currentTarget.value))}
          >
            {files.map((one) => (
              <option key={one.path} value={one.path}>
                {one.path}
              </option>
            ))}
          </select>
        </label>
      )}
      {asked.value && files.length === 0 && (
        <p class="empty">
          This server runs without a config file: it serves a folder by its defaults.
        </p>
      )}
      {asked.value && file && (
        <Editor
          key={`${file.path} ${file.hash}`}
          of={file}
          config={asked.value}
          onApplied={asked.again}
        />
      )}
    </Page>
  );
}

function Editor(props: { of: ConfigFile; config: ConfigFiles; onApplied(): void }): JSX.Element {
  const { of, config } = props;
  const [text, setText] = useState(of.text);
  const [faults, setFaults] = useState<ConfigFault[] | null>(null);
  const [diff, setDiff] = useState<string | null>(null);
  const deed = useDeed();
  const box = useRef<HTMLTextAreaElement>(null);
  const isChanged = text !== of.text;
  const reason =
    whyNot() ?? (config.editable ? null : (config.why_not ?? "it cannot be changed here"));
  // Where the server may not write the file, somebody who may can have the text to apply it.
  const command = of.command;
  const given = { path: of.path, text, base_hash: of.hash };
  const check = (): void =>
    void deed.run(async () => {
      const got = await act<ConfigVerdict>("v1/config/check", given);
      setFaults([...got.faults, ...got.warnings]);
      return got.ok ? "The config is in order." : "This config would be refused.";
    });
  const compare = (): void =>
    void deed.run(async () => {
      const got = await act<ConfigDifference>("v1/config/diff", given);
      setDiff(got.diff);
      return got.diff === "" ? "Nothing differs." : "What would change stands below.";
    });
  const apply = (): void =>
    void deed
      .run(async () => (await act<ConfigChange>("v1/config/apply", given)).text)
      .then((isDone) => isDone && props.onApplied());
  return (
    <Panel
      title={<Code text={of.path} />}
      tools={
        <>
          <Action label="Check" isForAll isOff={deed.isRunning} onDo={check} />
          <Action label="Show changes" isForAll isOff={deed.isRunning} onDo={compare} />
          <Action
            label="Apply"
            isOff={deed.isRunning || !isChanged || reason !== null}
            offReason={reason ?? (isChanged ? "" : "nothing has been changed")}
            confirm="The file is written and the server goes over to it, unless something is wrong with it. The file from before is kept for Roll back."
            onDo={apply}
          />
          <button type="button" disabled={!isChanged} onClick={() => setText(of.text)}>
            Undo all
          </button>
        </>
      }
    >
      {!of.in_force && (
        <Notice level="warning">
          This file has been changed since the server read it. Reload puts it in force.
        </Notice>
      )}
      {reason !== null && (
        <Notice level="notice">
          <Say text={reason} />
        </Notice>
      )}
      <Outcome deed={deed} />
      {faults !== null && <Faults of={faults} box={box} />}
      <Text
        value={text}
        isFixed={reason !== null && command === null}
        box={box}
        onText={setText}
        label={`Text of ${of.path}`}
      />
      {diff !== null && diff !== "" && <Diff of={diff} />}
      {command !== null && isChanged && <ByCommand text={text} command={command} />}
    </Panel>
  );
}

/** How to apply a text that only the command line may. */
function ByCommand(props: { text: string; command: string }): JSX.Element {
  return (
    <div class="by-command">
      <p>Save the new text, and where hob runs, type what stands below:</p>
      <button type="button" onClick={() => save(NEW_FILE, props.text, "application/toml")}>
        Save as {NEW_FILE}
      </button>
      <pre tabIndex={0} aria-label="Command that applies it">
        <Say text={props.command} />
      </pre>
    </div>
  );
}

function Text(props: {
  value: string;
  label: string;
  isFixed: boolean;
  box: { current: HTMLTextAreaElement | null };
  onText(text: string): void;
}): JSX.Element {
  const numbers = useRef<HTMLSpanElement>(null);
  const lines = props.value.split("\n").length;
  useEffect(() => {
    if (props.box.current) props.box.current.scrollTop = 0;
  }, [props.label]);
  return (
    <div class="editor">
      <pre class="line-numbers" aria-hidden="true">
        <span ref={numbers}>
          {Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join("")}
        </span>
      </pre>
      <textarea
        ref={props.box}
        aria-label={props.label}
        value={props.value}
        readOnly={props.isFixed}
        spellcheck={false}
        autocapitalize="off"
        wrap="off"
        rows={Math.min(32, Math.max(8, lines + 1))}
        onInput={(event) => props.onText(event.currentTarget.value)}
        onScroll={(event) => {
          const { scrollTop } = event.currentTarget;
          if (numbers.current) numbers.current.style.transform = `translateY(${-scrollTop}px)`;
        }}
      />
    </div>
  );
}

function Faults(props: {
  of: ConfigFault[];
  box: { current: HTMLTextAreaElement | null };
}): JSX.Element | null {
  if (props.of.length === 0) return null;
  const show = (line: number): void => {
    const box = props.box.current;
    if (!box) return;
    const lines = box.value.split("\n");
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    box.focus();
    box.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
    box.scrollTop = (box.scrollHeight / lines.length) * Math.max(0, line - 5);
  };
  return (
    <ul class="faults">
      {props.of.map((fault, index) => (
        <li key={index}>
          {fault.line ? (
            <button type="button" onClick={() => show(fault.line)}>
              line {fault.line}
              {fault.column ? `, column ${fault.column}` : ""}
            </button>
          ) : null}{" "}
          <Say text={fault.text} lines />
        </li>
      ))}
    </ul>
  );
}

function Diff(props: { of: string }): JSX.Element {
  return (
    <pre class="diff" tabIndex={0} aria-label="What would change">
      {props.of.split("\n").map((line, index) => (
        <span key={index} class={diffClass(line)}>
          <Say text={line} />
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

function diffClass(line: string): string {
  if (line.startsWith("@@")) return "place";
  if (line.startsWith("+") && !line.startsWith("+++")) return "added";
  return line.startsWith("-") && !line.startsWith("---") ? "removed" : "";
}

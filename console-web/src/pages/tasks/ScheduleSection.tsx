/** When the task fires: chosen, or written as an expression. */
import { Form, Radio, Select, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fromCron, toCron, type Built } from "../../lib/cronBuilder";
import type { Definition } from "../../lib/definition";
import { viewerZone } from "../../lib/time";
import { BuilderFields } from "./BuilderFields";
import type { Draft } from "./draft";
import { idOf, InstantField, Labelled, SpanField, TextField } from "./fields";
import { CronWords } from "./ScheduleWords";

const KINDS = ["every", "daily", "weekly", "monthly", "cron", "fixed_rate", "fixed_delay", "once", "none"] as const;
type Kind = (typeof KINDS)[number];

/** What a kind begins with. */
const FIRST: Record<Built["kind"], Built> = {
  every: { kind: "every", count: 5, unit: "minute" },
  daily: { kind: "daily", time: { hour: 2, minute: 0, second: 0 } },
  weekly: { kind: "weekly", weekdays: [2, 3, 4, 5, 6], time: { hour: 9, minute: 0, second: 0 } },
  monthly: { kind: "monthly", on: { is: "last" }, time: { hour: 18, minute: 0, second: 0 } },
};

function isBuilt(kind: Kind): kind is Built["kind"] {
  return Object.hasOwn(FIRST, kind);
}

function kindOf({ schedule, cron }: Definition): Kind {
  return schedule === "cron" ? (fromCron(cron)?.kind ?? "cron") : schedule;
}

/** The kind with what has been chosen in another: a time of day stays. */
function startOf(kind: Built["kind"], cron: string): Built {
  const [first, now] = [FIRST[kind], fromCron(cron)];
  if (now === undefined || now.kind === "every" || first.kind === "every") return first;
  return { ...first, time: now.time };
}

export function ScheduleSection({ draft }: { draft: Draft }) {
  const { t } = useTranslation("schedule");
  const { values, set } = draft;
  // An expression that could be built may still be written by hand.
  const [isManual, setManual] = useState(kindOf(values) === "cron");
  const found = kindOf(values);
  const kind = values.schedule === "cron" && isManual ? "cron" : found;
  const choose = (chosen: Kind) => {
    setManual(chosen === "cron");
    set("schedule", isBuilt(chosen) ? "cron" : chosen);
    if (isBuilt(chosen)) set("cron", toCron(startOf(chosen, values.cron)));
    if (chosen === "cron" && values.cron === "") set("cron", toCron(FIRST.daily));
    if ((chosen === "fixed_rate" || chosen === "fixed_delay") && values.interval_ms === 0) set("interval_ms", 60_000);
  };
  const built = kind === "cron" ? undefined : fromCron(values.cron);
  return (
    <>
      <Form.Item extra={t(`kind_help.${kind}`)}>
        <Radio.Group
          aria-label={t("kind.label")}
          optionType="button"
          value={kind}
          options={KINDS.map((value) => ({ value, label: t(`kind.${value}`), onChange: () => choose(value) }))}
          className="kinds"
        />
      </Form.Item>
      {values.schedule === "cron" && built !== undefined && <BuilderFields built={built} onChange={(changed) => set("cron", toCron(changed))} />}
      {kind === "cron" && <TextField draft={draft} name="cron" mono required />}
      {values.schedule === "cron" && (
        <Typography.Paragraph>
          <CronWords cron={values.cron} />
          {built !== undefined && <span className="soft mono"> · {values.cron}</span>}
        </Typography.Paragraph>
      )}
      {(kind === "fixed_rate" || kind === "fixed_delay") && <SpanField draft={draft} name="interval_ms" />}
      <ZoneField draft={draft} />
      {kind === "once" && <InstantField draft={draft} name="fire_at" />}
    </>
  );
}

/** The viewer's zone and UTC first: they are what is chosen most. */
function zones(chosen: string): string[] {
  return [...new Set([chosen, viewerZone(), "UTC", ...Intl.supportedValuesOf("timeZone")])];
}

function ZoneField({ draft }: { draft: Draft }) {
  const { time_zone } = draft.values;
  return (
    <Labelled draft={draft} name="time_zone">
      <Select
        id={idOf("time_zone")}
        showSearch
        value={time_zone}
        onChange={(zone: string) => draft.set("time_zone", zone)}
        options={zones(time_zone).map((value) => ({ value, label: value }))}
        className="wide-select"
      />
    </Labelled>
  );
}

/** The next ten fires of what is being typed, with what is skipped and why. */
import { Alert, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { $api, Problem, type Schema } from "../../api/client";
import type { Definition } from "../../lib/definition";
import { detailOf } from "../../i18n/fieldWords";
import { mark, type Marked } from "../../lib/previewMarks";
import { instant, span, viewerZone } from "../../lib/time";
import { Failure } from "../../parts/Failure";
import { Word } from "../../parts/Tags";
import { useSettled } from "../../parts/useSettled";

const SETTLE_MS = 300;
const COUNT = 10;

/** What the node's answer depends on, in one text: nothing is asked again for a new name. */
function questionOf(values: Definition, tenant: string): Schema<"ScheduleQuestion"> {
  // Names and parameters say nothing about when, and the node would judge them.
  const about = { name: "preview", handler: "preview", description: "", params: "", parents: [], tags: [], tags_any: [], tags_none: [] };
  return { ...values, ...about, tenant: tenant === "" ? null : tenant, count: COUNT };
}

export function FirePreview({ values, tenant }: { values: Definition; tenant: string }) {
  const { t } = useTranslation("schedule");
  const asked = useSettled(JSON.stringify(questionOf(values, tenant)), SETTLE_MS);
  return (
    <section aria-labelledby="preview" aria-live="polite">
      <Typography.Title level={2} id="preview" className="section-title">
        {t("preview.title")}
      </Typography.Title>
      {values.schedule === "none" ? <Typography.Text type="secondary">{t("preview.none")}</Typography.Text> : <Answer body={JSON.parse(asked) as Schema<"ScheduleQuestion">} />}
    </section>
  );
}

/** The question is the key of its answer: an old one is never shown for a new question. */
function Answer({ body }: { body: Schema<"ScheduleQuestion"> }) {
  const { t } = useTranslation("schedule");
  const { data, error } = $api.useQuery("post", "/schedules/preview", { body }, { retry: false, staleTime: 10_000, enabled: body.schedule !== "none" });
  const failure: unknown = error;
  if (failure instanceof Problem && failure.status === 400) return <Alert type="warning" showIcon title={t("preview.wrong", { detail: detailOf(failure) })} />;
  if (data === undefined) return failure === null ? <Typography.Text type="secondary">{t("preview.asking")}</Typography.Text> : <Failure error={failure} />;
  if (data.items.length === 0) return <Alert type="warning" showIcon title={t("preview.empty")} />;
  return (
    <>
      <Typography.Text type="secondary">{t("preview.in_zone", { zone: body.time_zone })}</Typography.Text>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, also by keyboard */}
      <ol className="plain-list scrolls" tabIndex={0}>
        {mark(data.items, body.time_zone).map((marked) => (
          <li key={`${marked.line.kind}${marked.line.fire_time}`}>
            <FireLine marked={marked} zone={body.time_zone} />
          </li>
        ))}
      </ol>
      {body.schedule === "fixed_delay" && <Typography.Text type="secondary">{t("preview.delay")}</Typography.Text>}
    </>
  );
}

function FireLine({ marked, zone }: { marked: Marked; zone: string }) {
  const { t } = useTranslation("schedule");
  const { line, offset, changedFrom } = marked;
  const isSkipped = line.kind === "skipped";
  return (
    <>
      {changedFrom !== undefined && <Word tone="odd">{t("preview.clock", { before: changedFrom, after: offset })}</Word>}
      <div className={isSkipped ? "fire-line fire-skipped" : "fire-line"}>
        <div>
          <time dateTime={new Date(line.fire_time).toISOString()} className="moment fire-time">
            {instant(line.fire_time, zone)} {offset}
          </time>
          {zone !== viewerZone() && <span className="soft"> · {t("preview.mine", { at: instant(line.fire_time, viewerZone()) })}</span>}
        </div>
        <Notes line={line} zone={zone} />
      </div>
    </>
  );
}

/** Why it does not fire, or what else there is to know. */
function Notes({ line, zone }: { line: Schema<"Preview">; zone: string }) {
  const { t } = useTranslation("schedule");
  const { note } = line;
  return (
    <>
      {line.kind === "skipped" && line.reason != null && (
        <div>
          <Word tone="idle">{t("preview.skipped")}</Word> {t(`skip.${line.reason}`)}
          {line.count > 1 && ` ${t("preview.count_skipped", { count: line.count, last: instant(line.last, zone) })}`}
          {line.more && ` … ${t("preview.more")}`}
        </div>
      )}
      {note?.what === "after_gap" && <div className="odd-text">{t("preview.after_gap")}</div>}
      {note?.what === "moved_from" && <div className="odd-text">{t("preview.moved_from", { day: note.day })}</div>}
      {note?.what === "moved_to" && <div className="odd-text">{t("preview.moved_to", { day: note.day })}</div>}
      {line.due_time > line.fire_time && <div className="soft">{t("preview.due", { span: span(line.due_time - line.fire_time) })}</div>}
    </>
  );
}

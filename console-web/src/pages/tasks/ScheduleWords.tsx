/** When a task fires, in words; the expression itself where there are none. */
import { Tooltip } from "antd";
import { useTranslation } from "react-i18next";
import { cronWords } from "../../lib/cronWords";
import type { Definition } from "../../lib/definition";
import { span, viewerZone } from "../../lib/time";
import { Moment } from "../../parts/Moment";

type When = Pick<Definition, "schedule" | "cron" | "time_zone" | "interval_ms" | "fire_at" | "parents">;

/** A cron expression in words, with its zone where that is not the viewer's. */
export function CronWords({ cron, zone }: { cron: string; zone?: string }) {
  const { i18n } = useTranslation();
  const words = cronWords(cron, i18n.language === "zh" ? "zh" : "en");
  const shown = words === undefined ? <span className="mono">{cron}</span> : <span>{words}</span>;
  return (
    <>
      {words === undefined ? shown : <Tooltip title={<span className="mono">{cron}</span>}>{shown}</Tooltip>}
      {zone !== undefined && zone !== viewerZone() && <span className="soft"> · {zone}</span>}
    </>
  );
}

export function ScheduleWords({ task }: { task: When }) {
  const { t } = useTranslation("schedule");
  const count = task.parents.length;
  switch (task.schedule) {
    case "none":
      return <span>{count === 0 ? t("in_words.manual") : t("in_words.after", { count })}</span>;
    case "cron":
      return (
        <span>
          <CronWords cron={task.cron} zone={task.time_zone} /> <AlsoAfter count={count} />
        </span>
      );
    case "fixed_rate":
      return (
        <span>
          {t("in_words.rate", { span: span(task.interval_ms) })} <AlsoAfter count={count} />
        </span>
      );
    case "fixed_delay":
      return (
        <span>
          {t("in_words.delay", { span: span(task.interval_ms) })} <AlsoAfter count={count} />
        </span>
      );
    case "once":
      return (
        <span>
          {t("in_words.once")} <Moment at={task.fire_at} taskZone={task.time_zone} /> <AlsoAfter count={count} />
        </span>
      );
  }
}

function AlsoAfter({ count }: { count: number }) {
  const { t } = useTranslation("schedule");
  return count === 0 ? null : <>{t("in_words.and_after", { count })}</>;
}

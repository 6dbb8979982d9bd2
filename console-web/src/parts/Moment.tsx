/** An instant in the viewer's zone; the pointer, or the keyboard's focus, tells more. */
import { Tooltip } from "antd";
import { useTranslation } from "react-i18next";
import { instant, offset, span, viewerZone, type Exactness } from "../lib/time";
import { useNow } from "../lib/now";

interface Properties {
  /** Epoch ms; absent or 0: never. */
  at: number | null | undefined;
  /** The zone to show it in, instead of the viewer's. */
  zone?: string;
  /** The task's zone, shown beside it on demand. */
  taskZone?: string;
  exactness?: Exactness;
  /** How long ago, or in how long, instead of when. */
  relative?: boolean;
  /** What stands for no instant. */
  otherwise?: string;
}

export function Moment({ at, zone, taskZone, exactness = "second", relative = false, otherwise }: Properties) {

  const shown = zone ?? viewerZone();
  if (at === null || at === undefined || at === 0) return <span>{otherwise ?? "–"}</span>;
  const more = (
    <>
      <div>{`${instant(at, shown, "millisecond")} ${offset(at, shown)} ${shown}`}</div>
      {taskZone !== undefined && taskZone !== shown && <div>{`${instant(at, taskZone, "millisecond")} ${offset(at, taskZone)} ${taskZone}`}</div>}
    </>
  );
  return (
    <Tooltip title={more}>
      <time dateTime={new Date(at).toISOString()} className="moment">
        {relative ? <Relative at={at} /> : instant(at, shown, exactness)}
      </time>
    </Tooltip>
  );
}

function Relative({ at }: { at: number }) {
  const { t } = useTranslation();
  const now = useNow(1_000);
  const distance = now - at;
  if (Math.abs(distance) < 1_500) return <>{t("just_now")}</>;
  const whole = span(Math.round(Math.abs(distance) / 1_000) * 1_000);
  return <>{distance > 0 ? t("ago", { span: whole }) : t("in_span", { span: whole })}</>;
}

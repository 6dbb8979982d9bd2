/** What is used of one quota, as a bar with its numbers. */
import { Flex, Progress, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { fillOf, percentOf } from "../../lib/quotas";
import { Word } from "../../parts/Tags";

interface Properties {
  label: string;
  used: number;
  /** 0 is no bound. */
  bound: number;
  /** It is counted only where there is a bound. */
  onlyBounded?: boolean;
}

const STROKES = { none: "var(--idle)", room: "var(--open)", nearly: "var(--odd)", full: "var(--bad)" };

export function Meter({ label, used, bound, onlyBounded = false }: Properties) {
  const { t } = useTranslation("admin");
  const fill = fillOf(used, bound);
  if (fill === "none") {
    return (
      <Typography.Text type="secondary" className="number">
        {onlyBounded ? t("quotas.not_counted") : t("quotas.used_unbounded", { used: used.toLocaleString("en-US") })}
      </Typography.Text>
    );
  }
  const text = t("quotas.used_of", { used: used.toLocaleString("en-US"), bound: bound.toLocaleString("en-US") });
  return (
    <Flex vertical className="meter">
      <Flex gap="small" align="center" wrap>
        <span className="number">{text}</span>
        {fill === "full" && <Word tone="bad">{t("quotas.full")}</Word>}
        {fill === "nearly" && <Word tone="odd">{t("quotas.nearly")}</Word>}
      </Flex>
      <Progress percent={percentOf(used, bound)} showInfo={false} size="small" strokeColor={STROKES[fill]} aria-label={`${label}: ${text}`} />
    </Flex>
  );
}

/** How a task did over time: outcomes, lateness, duration. */
import { Empty, Flex, Segmented, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { rangeOf, RANGES, type Range } from "../../lib/figures";
import { useFilters } from "../../lib/search";
import { Failure } from "../../parts/Failure";
import { OutcomeChart, TimesChart } from "../../parts/FigureCharts";
import { useFigures } from "../../parts/useFigures";

const OFFERED = ["1h", "6h", "24h", "7d", "90d"] as const satisfies readonly Range[];
type Offered = (typeof OFFERED)[number];

function isOffered(range: Range): range is Offered {
  return OFFERED.some((each) => each === range);
}

export function Figures({ task }: { task: string }) {
  const { t } = useTranslation("task");
  const { filters, set } = useFilters(["range"]);
  const asked = rangeOf(filters.range, OFFERED);
  const range: Offered = isOffered(asked) ? asked : "1h";
  const { answer, filled, totals, error, again } = useFigures({ tenant: undefined, task, range });
  return (
    <Flex vertical gap="middle">
      <Segmented<Offered>
        aria-label={t("figures.range")}
        value={range}
        onChange={(chosen) => set({ range: chosen })}
        options={OFFERED.map((value) => ({ value, label: t(`figures.ranges.${value}`) }))}
      />
      <Failure error={error} again={again} />
      {totals.fires === 0 && answer !== undefined && <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t("figures.none")} />}
      {totals.fires > 0 && (
        <>
          <OutcomeChart filled={filled} step={RANGES[range].step} together={task} />
          <TimesChart filled={filled} of="lateness" together={task} />
          <TimesChart filled={filled} of="duration" together={task} />
        </>
      )}
      <Typography.Text type="secondary">{t("figures.note")}</Typography.Text>
    </Flex>
  );
}

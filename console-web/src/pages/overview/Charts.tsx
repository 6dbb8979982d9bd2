/** How fires ended and how late they started, over the time that the address names. */
import { Segmented } from "antd";
import { useTranslation } from "react-i18next";
import { RANGES, rangeOf, type Range } from "../../lib/figures";
import { useFilters } from "../../lib/search";
import { NoFires, OutcomeChart, TimesChart } from "../../parts/FigureCharts";
import { Section } from "../../parts/Section";
import { useFigures } from "../../parts/useFigures";

const OFFERED: readonly Range[] = ["1h", "6h", "24h", "7d"];

export function Charts({ tenant }: { tenant: string | undefined }) {
  const { t } = useTranslation("overview");
  const { filters, set } = useFilters(["range"]);
  const range = rangeOf(filters.range, OFFERED);
  const { answer, filled, totals, error, again } = useFigures({ tenant, range });
  return (
    <Section
      title={t("charts.title")}
      extra={
        <Segmented<Range>
          aria-label={t("range")}
          size="small"
          value={range}
          options={OFFERED.map((value) => ({ value, label: t(`ranges.${value}`) }))}
          onChange={(value) => set({ range: value === "1h" ? undefined : value })}
        />
      }
      isKnown={answer !== undefined}
      error={error}
      // That the last hour could not be read is said on top.
      again={range === "1h" ? undefined : again}
    >
      {totals.fires === 0 && <NoFires />}
      {totals.fires > 0 && (
        <div className="chart-pair">
          <OutcomeChart filled={filled} step={RANGES[range].step} together="overview" />
          <TimesChart filled={filled} of="lateness" together="overview" />
        </div>
      )}
    </Section>
  );
}

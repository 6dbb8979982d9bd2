/** Figures of a tenant, or of a task, over time. */
import { DownloadOutlined } from "@ant-design/icons";
import { Alert, Button, Flex, Segmented } from "antd";
import { useTranslation } from "react-i18next";
import { useSession } from "../../api/session";
import { csvOf } from "../../lib/csv";
import { rangeOf, RANGES, stepOf, stepsOf, type Range, type Step } from "../../lib/figures";
import { useFilters } from "../../lib/search";
import { useTenant } from "../../lib/tenant";
import { instant, viewerZone } from "../../lib/time";
import { Failure } from "../../parts/Failure";
import { OutcomeChart, TimesChart } from "../../parts/FigureCharts";
import { Page } from "../../parts/Page";
import { Section } from "../../parts/Section";
import { useFigures, type Figures } from "../../parts/useFigures";
import { Histogram } from "./Histogram";
import { TaskSelect } from "./TaskSelect";
import { Totals } from "./Totals";

const OFFERED: readonly Range[] = ["1h", "6h", "24h", "7d", "30d", "90d"];

/** Has the browser save a text. */
function save(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(address);
}

export default function Statistics() {
  const { t } = useTranslation("statistics");
  const common = useTranslation().t;
  const { tenant } = useTenant();
  const { may } = useSession();
  const { filters } = useFilters(["task", "range", "step"]);
  const range = rangeOf(filters.range, OFFERED);
  const step = stepOf(filters.step, range);
  const { task } = filters;
  const figures = useFigures({ tenant, task, range, step });
  const { answer, filled } = figures;
  const download = () => {
    const points = filled.points.filter((point) => point !== undefined);
    save(`carillon-${task ?? tenant ?? "all"}-${range}-${step}.csv`, csvOf(points, answer?.bounds_ms ?? []));
  };
  const subtitle = task !== undefined ? t("of_task") : tenant !== undefined ? t("of_tenant", { tenant }) : t("of_all");
  return (
    <Page
      title={common("pages.statistics")}
      subtitle={subtitle}
      actions={
        <Button icon={<DownloadOutlined aria-hidden />} disabled={figures.totals.fires === 0} onClick={download}>
          {t("download")}
        </Button>
      }
    >
      <Flex gap="small" align="center" wrap>
        {may("tasks.read", { tenant }) && <TaskSelect tenant={tenant} />}
        <RangeChoice range={range} step={step} />
      </Flex>
      <Failure error={figures.error} again={figures.again} />
      {figures.isPartial && <Alert type="info" showIcon title={t("choose_task")} description={t("choose_task_help", { tenant: tenant ?? "" })} />}
      {answer !== undefined && figures.error === null && <Shown figures={figures} step={step} />}
    </Page>
  );
}

function RangeChoice({ range, step }: { range: Range; step: Step }) {
  const { t } = useTranslation("statistics");
  const words = useTranslation("overview").t;
  const { set } = useFilters(["range", "step"]);
  return (
    <>
      <Segmented<Range>
        aria-label={words("range")}
        value={range}
        options={OFFERED.map((value) => ({ value, label: words(`ranges.${value}`) }))}
        // Another range has other steps.
        onChange={(value) => set({ range: value === "1h" ? undefined : value, step: undefined })}
      />
      <Segmented<Step>
        aria-label={t("step")}
        value={step}
        options={stepsOf(range).map((value) => ({ value, label: t(`steps.${value}`) }))}
        onChange={(value) => set({ step: value === RANGES[range].step ? undefined : value })}
      />
    </>
  );
}

function Shown({ figures: { answer, filled, totals }, step }: { figures: Figures; step: Step }) {
  const { t } = useTranslation("statistics");
  const words = useTranslation("overview").t;
  const bounds = answer?.bounds_ms ?? [];
  const [first, last] = [filled.instants[0], filled.instants.at(-1)];
  if (totals.fires === 0 || first === undefined || last === undefined) return <Alert type="info" showIcon title={t("none")} description={t("none_help")} />;
  const shown = (at: number) => instant(at, viewerZone(), "minute");
  const window = t("window", { from: shown(first), until: shown(Math.min(last + (answer?.step_ms ?? 0), answer?.counted_until ?? last)) });
  return (
    <>
      <Section title={words("charts.title")} extra={window}>
        <div className="chart-pair">
          <OutcomeChart filled={filled} step={step} together="statistics" />
          <TimesChart filled={filled} of="lateness" together="statistics" />
          <TimesChart filled={filled} of="duration" together="statistics" />
        </div>
      </Section>
      <Section title={t("totals")}>
        <Totals totals={totals} bounds={bounds} />
      </Section>
      <div className="engine">
        <Section title={t("lateness")}>
          <Histogram label={t("lateness_long")} buckets={totals.lateness.buckets} bounds={bounds} />
        </Section>
        <Section title={t("duration")}>
          <Histogram label={t("duration_long")} buckets={totals.duration.buckets} bounds={bounds} />
        </Section>
      </div>
    </>
  );
}

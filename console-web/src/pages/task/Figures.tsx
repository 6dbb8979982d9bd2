/** How a task did over time: outcomes, lateness, duration. */
import { Empty, Flex, Segmented, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { useFilters } from "../../lib/search";
import { useNow } from "../../lib/now";
import { span } from "../../lib/time";
import { Chart, type Series } from "../../parts/Chart";
import { Failure } from "../../parts/Failure";

const MINUTE = 60_000;
const RANGES = {
  "1h": { ms: 60 * MINUTE, step: "1m" },
  "6h": { ms: 360 * MINUTE, step: "5m" },
  "24h": { ms: 1_440 * MINUTE, step: "1h" },
  "7d": { ms: 10_080 * MINUTE, step: "1h" },
  "90d": { ms: 129_600 * MINUTE, step: "1d" },
} as const;
type Range = keyof typeof RANGES;

function isRange(word: string | undefined): word is Range {
  return word !== undefined && Object.hasOwn(RANGES, word);
}

function times(points: Schema<"Point">[], kind: "lateness" | "duration"): Series[] {
  return (["p50_ms", "p90_ms", "p99_ms"] as const).map((which, index) => ({
    label: which.slice(0, 3),
    colour: [0, 3, 2][index] ?? 0,
    values: points.map((point) => point[kind][which] ?? null),
  }));
}

export function Figures({ task }: { task: string }) {
  const { t } = useTranslation("task");
  const { filters, set } = useFilters(["range"]);
  const range: Range = isRange(filters.range) ? filters.range : "1h";
  const { ms, step } = RANGES[range];
  // A minute's figures are there when it is over: asking more often shows nothing new.
  const until = Math.floor(useNow(MINUTE / 2) / MINUTE) * MINUTE;
  const query = { task, from: until - ms, until, step };
  const { data, error, refetch } = $api.useQuery("get", "/statistics", { params: { query } }, { placeholderData: (last) => last });
  const points = data?.items ?? [];
  const instants = points.map((point) => point.start);
  const outcomes: Series[] = (["succeeded", "failed", "discarded", "expired", "cancelled"] as const)
    .map((outcome, index) => ({ label: t(`figures.${outcome}`), colour: [1, 2, 3, 4, 6][index] ?? 0, values: points.map((point) => point[outcome]) }))
    .filter(({ values }, index) => index < 2 || values.some((value) => value > 0));
  return (
    <Flex vertical gap="middle">
      <Segmented
        aria-label={t("figures.range")}
        value={range}
        onChange={(chosen) => set({ range: chosen })}
        options={(Object.keys(RANGES) as Range[]).map((value) => ({ value, label: t(`figures.ranges.${value}`) }))}
      />
      <Failure error={error} again={() => void refetch()} />
      {points.length === 0 && data !== undefined ? (
        <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t("figures.none")} />
      ) : (
        <>
          <Chart label={t("figures.outcomes")} instants={instants} series={outcomes} write={(value) => String(Math.round(value))} whole together={task} />
          <Chart label={t("figures.lateness")} instants={instants} series={times(points, "lateness")} write={span} together={task} />
          <Chart label={t("figures.duration")} instants={instants} series={times(points, "duration")} write={span} together={task} />
        </>
      )}
      <Typography.Text type="secondary">{t("figures.note")}</Typography.Text>
    </Flex>
  );
}

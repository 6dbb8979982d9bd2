/** All points together: how fires ended, and what their times were. */
import { Tooltip } from "antd";
import { useTranslation } from "react-i18next";
import { mean, millis, OUTCOMES, percentile, type Sum, type Totals as Figures } from "../../lib/figures";

export function Totals({ totals, bounds }: { totals: Figures; bounds: readonly number[] }) {
  return (
    <div className="chart-pair">
      <Outcomes totals={totals} />
      <TimesTable totals={totals} bounds={bounds} />
    </div>
  );
}

function Outcomes({ totals }: { totals: Figures }) {
  const { t } = useTranslation("statistics");
  const words = useTranslation("overview").t;
  const share = (count: number) => `${((count / totals.fires) * 100).toFixed(2)} %`;
  const row = (name: string, count: number, of: string) => (
    <tr key={name}>
      <th scope="row">{name}</th>
      <td className="number">{count.toLocaleString("en-US")}</td>
      <td className="number">{of}</td>
    </tr>
  );
  return (
    <table className="totals">
      <thead>
        <tr>
          <th scope="col">{t("outcome")}</th>
          <th scope="col">{t("count")}</th>
          <th scope="col">{t("share")}</th>
        </tr>
      </thead>
      <tbody>
        {row(t("fires"), totals.fires, "")}
        {OUTCOMES.map((name) => row(words(`outcomes.${name}`), totals[name], share(totals[name])))}
        <tr>
          <th scope="row">
            <Tooltip title={t("failures_help")}>
              <span>{t("failures")}</span>
            </Tooltip>
          </th>
          <td className="number">{totals.failures.toLocaleString("en-US")}</td>
          <td />
        </tr>
      </tbody>
    </table>
  );
}

function TimesTable({ totals, bounds }: { totals: Figures; bounds: readonly number[] }) {
  const { t } = useTranslation("statistics");
  const shown = (ms: number | null) => (ms === null ? "–" : millis(ms));
  const row = (name: string, of: (sum: Sum) => string) => (
    <tr key={name}>
      <th scope="row">{name}</th>
      <td className="number">{of(totals.lateness)}</td>
      <td className="number">{of(totals.duration)}</td>
    </tr>
  );
  return (
    <table className="totals">
      <thead>
        <tr>
          <th scope="col">{t("times")}</th>
          <th scope="col">{t("lateness")}</th>
          <th scope="col">{t("duration")}</th>
        </tr>
      </thead>
      <tbody>
        {row(t("runs"), (sum) => sum.count.toLocaleString("en-US"))}
        {row(t("mean"), (sum) => shown(mean(sum)))}
        {([50, 90, 99] as const).map((share) => row(`p${share}`, (sum) => shown(percentile(sum, bounds, share / 100))))}
        {row(t("max"), (sum) => (sum.count === 0 ? "–" : millis(sum.max_ms)))}
      </tbody>
    </table>
  );
}

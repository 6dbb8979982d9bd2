/** How many times lie in each bucket, as a table with bars. */
import { Typography } from "antd";
import { useTranslation } from "react-i18next";
import { barsOf } from "../../lib/buckets";
import { span } from "../../lib/time";

interface Properties {
  /** Says of what. */
  label: string;
  buckets: readonly number[];
  bounds: readonly number[];
}

function percent(share: number): string {
  return share > 0 && share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(1)} %`;
}

export function Histogram({ label, buckets, bounds }: Properties) {
  const { t } = useTranslation("statistics");
  const bars = barsOf(buckets, bounds);
  if (bars.length === 0) return <Typography.Text type="secondary">{t("no_times")}</Typography.Text>;
  const most = bars.reduce((high, { count }) => Math.max(high, count), 1);
  return (
    <table className="histogram">
      <caption>{label}</caption>
      <thead>
        <tr>
          <th scope="col">{t("bucket")}</th>
          <th scope="col" className="histogram-wide" aria-hidden="true" />
          <th scope="col">{t("runs")}</th>
          <th scope="col">{t("share")}</th>
        </tr>
      </thead>
      <tbody>
        {bars.map(({ upTo, above, count, share }) => (
          <tr key={above}>
            <th scope="row">{upTo === undefined ? t("above", { span: span(above) }) : t("up_to", { span: span(upTo) })}</th>
            <td aria-hidden="true">
              {count > 0 && <div className="histogram-bar" style={{ width: `max(1px, ${(count / most) * 100}%)` }} />}
            </td>
            <td className="number">{count.toLocaleString("en-US")}</td>
            <td className="number">{percent(share)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

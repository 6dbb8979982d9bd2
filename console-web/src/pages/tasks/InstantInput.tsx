/** An instant, typed or chosen by the wall clock of a zone; its value is epoch ms, 0 where there is none. */
import { DatePicker, Flex, Typography } from "antd";
import dayjs, { type Dayjs } from "dayjs";
import utc from "dayjs/plugin/utc";
import { useTranslation } from "react-i18next";
import { fromWallClock, instant, viewerZone } from "../../lib/time";

dayjs.extend(utc);

interface Properties {
  id?: string;
  label?: string;
  value?: number;
  onChange?: (at: number) => void;
  /** The zone whose clock is typed; absent: the viewer's. */
  zone?: string;
}

export function InstantInput({ id, label, value = 0, onChange, zone = viewerZone() }: Properties) {
  const { t } = useTranslation("tasks");
  // The picker handles a wall clock, of no zone: as UTC none of its hours is missing or twice.
  const shown = value === 0 ? null : dayjs.utc(instant(value, zone).replace(" ", "T"));
  const change = (chosen: Dayjs | null) => onChange?.(chosen === null ? 0 : (fromWallClock(chosen.format("YYYY-MM-DDTHH:mm:ss"), zone) ?? 0));
  const isElsewhere = zone !== viewerZone();
  return (
    <Flex gap="small" align="center" wrap>
      <DatePicker
        id={id}
        aria-label={label}
        value={shown}
        onChange={change}
        showTime={{ format: "HH:mm:ss" }}
        format="YYYY-MM-DD HH:mm:ss"
        placeholder="YYYY-MM-DD HH:mm:ss"
        // "Now" would be the viewer's clock.
        showNow={false}
        needConfirm={false}
        className="instant-input"
      />
      <Typography.Text type="secondary">
        {isElsewhere && value !== 0 ? t("zone_and_mine", { zone, mine: instant(value, viewerZone()) }) : zone}
      </Typography.Text>
    </Flex>
  );
}

/** An instant, typed as the wall clock of a zone; its value is epoch ms, 0 where there is none. */
import { Flex, Input, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fromWallClock, instant, viewerZone } from "../../lib/time";

interface Properties {
  id?: string;
  label?: string;
  value?: number;
  onChange?: (at: number) => void;
  /** The zone whose clock is typed; absent: the viewer's. */
  zone?: string;
}

/** `datetime-local` leaves seconds out when they are 0. */
function withSeconds(text: string): string {
  return text.length === 16 ? `${text}:00` : text;
}

export function InstantInput({ id, label, value = 0, onChange, zone = viewerZone() }: Properties) {
  const { t } = useTranslation("tasks");
  const [typed, setTyped] = useState({ text: "", at: 0, zone });
  // Half an instant is kept while it is typed.
  const text = typed.at === value && typed.zone === zone ? typed.text : value === 0 ? "" : instant(value, zone).replace(" ", "T");
  const change = (now: string) => {
    const at = now === "" ? 0 : (fromWallClock(withSeconds(now), zone) ?? 0);
    setTyped({ text: now, at, zone });
    onChange?.(at);
  };
  const isElsewhere = zone !== viewerZone();
  return (
    <Flex gap="small" align="center" wrap>
      <Input id={id} aria-label={label} type="datetime-local" step={1} value={text} onChange={(event) => change(event.target.value)} className="instant-input" />
      <Typography.Text type="secondary">
        {isElsewhere && value !== 0 ? t("zone_and_mine", { zone, mine: instant(value, viewerZone()) }) : zone}
      </Typography.Text>
    </Flex>
  );
}

/** Text of a task or run: of any size, bounded in height, harmless, and to be copied as it is. */
import { Flex, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { beginning, visible } from "../../lib/rawText";

/** Of a longer text only the beginning is drawn. */
const SHOWN = 50_000;

export function RawText({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation("logs");
  const { t: common } = useTranslation();
  const shown = beginning(text, SHOWN);
  return (
    <Flex vertical gap={4}>
      <Flex align="start" gap={4}>
        {/* It scrolls, so the keyboard must get there. */}
        {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
        <pre className="raw log-raw" tabIndex={0} role="region" aria-label={label}>
          {visible(shown)}
        </pre>
        <Typography.Text copyable={{ text, tooltips: [common("copy"), common("copied")] }} />
      </Flex>
      {shown.length < text.length && <Typography.Text type="secondary">{t("cut_text", { shown: shown.length, all: text.length })}</Typography.Text>}
    </Flex>
  );
}

/** Language and appearance. */
import { Flex, Form, Segmented, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { useAppearance, type Appearance } from "../../lib/appearance";
import { speak, type Language } from "../../i18n";
import { viewerZone } from "../../lib/time";

export function Preferences() {
  const { t, i18n } = useTranslation();
  const people = useTranslation("people");
  const { appearance, choose } = useAppearance();
  return (
    <Flex vertical gap="middle">
      <Typography.Text>{people.t("account.preferences_text")}</Typography.Text>
      <Form layout="vertical">
        <Form.Item label={t("language")}>
          <Segmented<Language>
            aria-label={t("language")}
            value={i18n.language === "zh" ? "zh" : "en"}
            onChange={(language) => void speak(language)}
            options={[
              { value: "en", label: "English" },
              { value: "zh", label: "中文" },
            ]}
          />
        </Form.Item>
        <Form.Item label={t("theme")}>
          <Segmented<Appearance>
            aria-label={t("theme")}
            value={appearance}
            onChange={choose}
            options={[
              { value: "light", label: t("theme_light") },
              { value: "dark", label: t("theme_dark") },
              { value: "system", label: t("theme_system") },
            ]}
          />
        </Form.Item>
      </Form>
      <Typography.Text type="secondary">{people.t("account.zone", { zone: viewerZone() })}</Typography.Text>
    </Flex>
  );
}

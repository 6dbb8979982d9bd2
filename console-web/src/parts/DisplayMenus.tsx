import { GlobalOutlined, MoonOutlined, SunOutlined } from "@ant-design/icons";
import { Button, Dropdown } from "antd";
import { useTranslation } from "react-i18next";
import { speak } from "../i18n";
import { useAppearance } from "../lib/appearance";

/** Language and appearance; they stand on the pages before a login, too. */
export function DisplayMenus() {
  const { t, i18n } = useTranslation();
  const { appearance, isDark, choose } = useAppearance();
  return (
    <>
      <Dropdown
        trigger={["click"]}
        // Opened by keyboard, it is operated with the arrow keys.
        // eslint-disable-next-line jsx-a11y/no-autofocus -- it was opened to be used
        autoFocus
        menu={{
          selectedKeys: [i18n.language],
          items: [
            { key: "en", label: "English" },
            { key: "zh", label: "中文" },
          ],
          onClick: ({ key }) => void speak(key === "zh" ? "zh" : "en"),
        }}
      >
        <Button type="text" icon={<GlobalOutlined aria-hidden />} aria-label={t("language")} />
      </Dropdown>
      <Dropdown
        trigger={["click"]}
        // Opened by keyboard, it is operated with the arrow keys.
        // eslint-disable-next-line jsx-a11y/no-autofocus -- it was opened to be used
        autoFocus
        menu={{
          selectedKeys: [appearance],
          items: [
            { key: "light", label: t("theme_light") },
            { key: "dark", label: t("theme_dark") },
            { key: "system", label: t("theme_system") },
          ],
          onClick: ({ key }) => choose(key === "light" || key === "dark" ? key : "system"),
        }}
      >
        <Button type="text" icon={isDark ? <MoonOutlined aria-hidden /> : <SunOutlined aria-hidden />} aria-label={t("theme")} />
      </Dropdown>
    </>
  );
}

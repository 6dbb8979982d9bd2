import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Settings() {
  const { t } = useTranslation();
  return <Page title={t("pages.settings")}>{null}</Page>;
}

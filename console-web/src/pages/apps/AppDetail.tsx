import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function AppDetail() {
  const { t } = useTranslation();
  return <Page title={t("pages.apps")}>{null}</Page>;
}

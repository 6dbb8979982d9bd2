import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Statistics() {
  const { t } = useTranslation();
  return <Page title={t("pages.statistics")}>{null}</Page>;
}

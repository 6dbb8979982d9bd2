import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Overview() {
  const { t } = useTranslation();
  return <Page title={t("pages.overview")}>{null}</Page>;
}

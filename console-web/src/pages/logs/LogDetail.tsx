import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function LogDetail() {
  const { t } = useTranslation();
  return <Page title={t("pages.logs")}>{null}</Page>;
}

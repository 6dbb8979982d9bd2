import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Executors() {
  const { t } = useTranslation();
  return <Page title={t("pages.executors")}>{null}</Page>;
}

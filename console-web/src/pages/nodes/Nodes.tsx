import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Nodes() {
  const { t } = useTranslation();
  return <Page title={t("pages.nodes")}>{null}</Page>;
}

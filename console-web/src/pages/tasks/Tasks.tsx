import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Tasks() {
  const { t } = useTranslation();
  return <Page title={t("pages.tasks")}>{null}</Page>;
}

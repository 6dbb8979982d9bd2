import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function TaskDetail() {
  const { t } = useTranslation();
  return <Page title={t("pages.tasks")}>{null}</Page>;
}

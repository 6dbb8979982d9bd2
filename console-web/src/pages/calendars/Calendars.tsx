import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Calendars() {
  const { t } = useTranslation();
  return <Page title={t("pages.calendars")}>{null}</Page>;
}

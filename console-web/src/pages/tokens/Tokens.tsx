import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Tokens() {
  const { t } = useTranslation();
  return <Page title={t("pages.tokens")}>{null}</Page>;
}

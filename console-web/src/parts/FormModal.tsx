/** A form in a dialog: what the node refuses stands at the field, or above the form. */
import { useQueryClient } from "@tanstack/react-query";
import { Button, Flex, Form, Modal, type FormInstance } from "antd";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Problem } from "../api/client";
import { renew } from "../api/renew";
import { errorsOf } from "../lib/form-errors";
import { refusalOf } from "../lib/refusals";
import { useAction } from "./useAction";
import { Refused } from "./useExplained";

interface Properties<Values extends object, Answer> {
  open: boolean;
  title: string;
  /** What the button says that sends it. */
  submitLabel: string;
  initial: Partial<Values>;
  /** Sends it; that of the opening is called, with the revision that was known then. */
  submit: (values: Values) => Promise<Answer>;
  /** What to do with the answer, before the form closes. */
  then?: (answer: Answer) => void;
  /** What to say when it has worked; absent: "Done". */
  done?: string;
  onClose: () => void;
  width?: number;
  /** The fields; they are given the form where they depend on each other. */
  children: ReactNode | ((form: FormInstance<Values>) => ReactNode);
}

export function FormModal<Values extends object, Answer>(properties: Properties<Values, Answer>) {
  const { open, title, width = 560, onClose } = properties;
  return (
    <Modal open={open} title={title} width={width} footer={null} onCancel={onClose} mask={{ closable: false }} destroyOnHidden>
      {open && <Body {...properties} />}
    </Modal>
  );
}

function Body<Values extends object, Answer>({ submitLabel, initial, submit: latest, then, done, onClose, children }: Properties<Values, Answer>) {
  const { t } = useTranslation();
  const people = useTranslation("people");
  const queries = useQueryClient();
  const [form] = Form.useForm<Values>();
  const { busy, run } = useAction();
  // Values and revision are those of the opening: saving over another user's change is refused.
  const [submit] = useState(() => latest);
  const [error, setError] = useState<unknown>(null);
  const send = async (values: Values) => {
    setError(null);
    const failed = (failure: unknown) => {
      const { shown, rest } = errorsOf(failure, Object.keys(form.getFieldsValue()));
      (form as FormInstance).setFields(shown);
      setError(rest ? failure : null);
      return true;
    };
    if (await run(() => submit(values), { failed, then, done })) onClose();
  };
  const isStale = error instanceof Problem && error.status === 409 && refusalOf(error) === undefined;
  const reload = () => {
    void renew(queries);
    onClose();
  };
  return (
    <Form<Values> form={form} layout="vertical" initialValues={initial} onFinish={(values) => void send(values)} scrollToFirstError>
      {typeof children === "function" ? children(form) : children}
      <Flex vertical gap="middle">
        <Refused error={error} />
        <Flex justify="end" gap="small" wrap>
          {isStale && <Button onClick={reload}>{people.t("form.reload")}</Button>}
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="primary" htmlType="submit" loading={busy}>
            {submitLabel}
          </Button>
        </Flex>
      </Flex>
    </Form>
  );
}

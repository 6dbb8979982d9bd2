/** A form in a dialog: Enter sends it, what the node refuses stands at the field or above the buttons. */
import { Button, Flex, Form, Modal, type FormInstance } from "antd";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { errorsOf } from "../lib/form-errors";
import { Failure } from "./Failure";
import { useAction } from "./useAction";

interface Properties<Values extends object, Answer> {
  title: string;
  /** What the button says. */
  submitLabel: string;
  initial: Partial<Values>;
  /** Names of the fields, as the API names them: its errors are shown there. */
  fields: readonly (keyof Values & string)[];
  onSubmit: (values: Values) => Promise<Answer>;
  onDone?: (answer: Answer) => void;
  onClose: () => void;
  done?: string;
  children: (form: FormInstance<Values>) => ReactNode;
}

/** Shown as long as it is rendered. */
export function DialogForm<Values extends object, Answer>({ title, onClose, ...rest }: Properties<Values, Answer>) {
  return (
    <Modal open title={title} footer={null} onCancel={onClose} mask={{ closable: false }}>
      <Fields onClose={onClose} {...rest} />
    </Modal>
  );
}

function Fields<Values extends object, Answer>({ submitLabel, initial, fields, onSubmit, onDone, onClose, done, children }: Omit<Properties<Values, Answer>, "title">) {
  const { t } = useTranslation();
  const [form] = Form.useForm<Values>();
  const { busy, run } = useAction();
  const [error, setError] = useState<unknown>(null);
  const failed = (failure: unknown) => {
    const { shown, rest } = errorsOf(failure, fields);
    for (const { name, errors } of shown) (form as FormInstance).setFields([{ name, errors }]);
    setError(rest ? failure : null);
    return true;
  };
  const send = async (values: Values) => {
    setError(null);
    if (await run(() => onSubmit(values), { failed, then: onDone, done })) onClose();
  };
  return (
    <Form<Values> form={form} layout="vertical" initialValues={initial} onFinish={(values) => void send(values)} scrollToFirstError>
      {children(form)}
      <Flex vertical gap="middle">
        <Failure error={error} />
        <Flex justify="end" gap="small" wrap>
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="primary" htmlType="submit" loading={busy}>
            {submitLabel}
          </Button>
        </Flex>
      </Flex>
    </Form>
  );
}

import { useEffect, useState, type ReactNode } from 'react';
import { Field } from './Field';
import { FormDialog } from './FormDialog';

interface Props {
  open: boolean;
  title: string;
  /** What is lost. */
  children: ReactNode;
  /** What has to be typed: the name of what goes. */
  word: string;
  /** Says that `word` has to be typed. */
  label: string;
  /** Said beside the button until it is typed. */
  blocked: string;
  confirm: string;
  cancel: string;
  busy?: boolean;
  error?: ReactNode;
  onConfirm(): void;
  onCancel(): void;
}

/** Ask for the name of what cannot be brought back once it is gone. */
export function TypedConfirm(props: Props): JSX.Element {
  const { open, word, children, onConfirm, onCancel } = props;
  const [typed, setTyped] = useState('');
  useEffect(() => setTyped(''), [open]);
  return (
    <FormDialog
      open={open}
      title={props.title}
      submit={props.confirm}
      cancel={props.cancel}
      danger
      busy={props.busy ?? false}
      error={props.error}
      blocked={typed.trim() === word ? undefined : props.blocked}
      onSubmit={onConfirm}
      onClose={onCancel}
    >
      {children}
      <Field label={props.label} value={typed} onChange={setTyped} placeholder={word} />
    </FormDialog>
  );
}

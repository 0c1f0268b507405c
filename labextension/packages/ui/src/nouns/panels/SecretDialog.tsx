/** What is shown once and never again: to be copied before the dialog is closed. */
import { Check, Copy } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../../kit/Button';
import { FormDialog } from '../../kit/FormDialog';
import { copyText } from '../../secure';
import { useAskBeforeLeaving } from '../../useAskBeforeLeaving';

interface Props {
  title: string;
  text: string;
  secrets: { label: string; value: string }[];
  children?: ReactNode;
  onClose(): void;
}

export function SecretDialog({ title, text, secrets, children, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const words = { title: t('secret.leaveTitle'), text: t('secret.leaveText') };
  const leaving = useAskBeforeLeaving(true, undefined, words);
  const kept = (): void => {
    leaving.allow();
    onClose();
  };
  return (
    <>
      <FormDialog
        open
        size="medium"
        title={title}
        submit={t('secret.kept')}
        onSubmit={kept}
        // Neither a key nor a click beside it says that it was kept.
        onClose={() => undefined}
      >
        <p>{text}</p>
        {children}
        <dl className="bai-secrets">
          {secrets.map(({ label, value }) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                <code>{value}</code>
                <CopyButton label={label} value={value} />
              </dd>
            </div>
          ))}
        </dl>
      </FormDialog>
      {leaving.dialog}
    </>
  );
}

export function CopyButton({ label, value }: { label: string; value: string }): JSX.Element {
  const { t } = useTranslation();
  const [outcome, setOutcome] = useState<'copied' | 'failed' | null>(null);
  const copied = outcome === 'copied';
  const copy = (): void => {
    void copyText(value).then(
      () => setOutcome('copied'),
      () => setOutcome('failed')
    );
  };
  return (
    <>
      <Button
        size="small"
        kind="quiet"
        icon={copied ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
        aria-label={t(copied ? 'secret.copiedLabel' : 'secret.copyLabel', { label })}
        onClick={copy}
      >
        {t(copied ? 'secret.copied' : 'secret.copy')}
      </Button>
      {outcome === 'failed' ? (
        <span className="bai-field-error" role="alert">
          {t('secret.notCopied')}
        </span>
      ) : null}
    </>
  );
}

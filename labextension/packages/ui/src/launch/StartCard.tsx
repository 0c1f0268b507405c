import { ApiError } from '@backendai/api';
import { Bookmark, CircleAlert, Code, Link2, Rocket, SquareTerminal } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { Field } from '../kit/Field';
import { FormDialog } from '../kit/FormDialog';
import { MenuButton } from '../kit/Menu';
import { Banner } from '../kit/States';
import { copyText } from '../secure';
import { launchAddress } from './address';
import { writeCommand, writePython } from './code';
import type { Submission } from './LaunchPage';
import type { Wish } from './wish';
import { FromService } from '../FromService';

interface Props {
  kind: 'interactive' | 'batch';
  wish: Wish | null;
  submission: Submission;
  /** The element in which the form tells what would become of it. */
  onPlace(place: HTMLElement | null): void;
  onSave(title: string): void;
}

/** What would happen, and the button that makes it happen. */
export function StartCard({ kind, wish, submission, onPlace, onSave }: Props): JSX.Element {
  const { t } = useTranslation();
  const [saving, setSaving] = useState(false);
  const { busy, error, href } = submission;
  return (
    <section className="bai-card bai-start-card" aria-labelledby="bai-outlook">
      <h2 id="bai-outlook">{t('launchPage.outlook')}</h2>
      <div ref={onPlace} className="bai-start-verdict" />
      {error ? (
        <Banner tone="error" icon={<CircleAlert size={18} />} urgent>
          <strong>{t('launchPage.refused')}</strong> <FromService text={error.message} />
          {error instanceof ApiError && error.requestId ? (
            <span className="bai-request-id">
              {t('state.request', { id: error.requestId })}
            </span>
          ) : null}
        </Banner>
      ) : null}
      {kind === 'batch' ? (
        <Button kind="primary" submits busy={busy} icon={<Rocket size={16} aria-hidden />}>
          {t('launchPage.submit')}
        </Button>
      ) : (
        <Continue href={href} submission={submission} />
      )}
      <div className="bai-start-more">
        <CopyMenu wish={wish} />
        <Button
          kind="quiet"
          size="small"
          icon={<Bookmark size={14} aria-hidden />}
          onClick={() => setSaving(true)}
        >
          {t('launchPage.save')}
        </Button>
      </div>
      <NameDialog
        open={saving}
        title={t('launchPage.save')}
        name={wish?.name ?? ''}
        onClose={() => setSaving(false)}
        onName={title => {
          onSave(title);
          setSaving(false);
        }}
      />
    </section>
  );
}

function Continue({
  href,
  submission
}: {
  href: string | null;
  submission: Submission;
}): JSX.Element {
  const { t } = useTranslation();
  const inLab = useHost().kind === 'lab';
  return (
    <>
      <Button
        kind="primary"
        icon={<Rocket size={16} aria-hidden />}
        href={href ?? undefined}
        newTab={inLab}
        onClick={event => {
          if (!submission.leave()) {
            event.preventDefault();
          }
        }}
      >
        {t('launchPage.continue')}
      </Button>
      <p className="bai-help">{t('launchPage.continueText')}</p>
    </>
  );
}

function CopyMenu({ wish }: { wish: Wish | null }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const copy = (text: string): void => {
    void copyText(text).then(
      () => host.notify('success', t('verbs.copied')),
      () => host.notify('error', t('verbs.notCopied'))
    );
  };
  const link = wish ? host.hrefOf(launchAddress(wish)) : null;
  return (
    <MenuButton
      label={t('launchPage.copy')}
      text={t('launchPage.copy')}
      size="small"
      icon={<Code size={14} aria-hidden />}
      entries={[
        {
          key: 'python',
          text: t('verbs.python'),
          icon: <Code size={16} aria-hidden />,
          onSelect: () => wish && copy(writePython(wish))
        },
        {
          key: 'command',
          text: t('verbs.command'),
          icon: <SquareTerminal size={16} aria-hidden />,
          onSelect: () => wish && copy(writeCommand(wish))
        },
        ...(link
          ? [
              {
                key: 'link',
                text: t('launchPage.link'),
                icon: <Link2 size={16} aria-hidden />,
                onSelect: () => copy(new URL(link, document.baseURI).href)
              }
            ]
          : [])
      ]}
    />
  );
}

interface NameProps {
  open: boolean;
  title: string;
  name: string;
  onName(name: string): void;
  onClose(): void;
}

export function NameDialog({ open, title, name, onName, onClose }: NameProps): JSX.Element {
  const { t } = useTranslation();
  const [text, setText] = useState<string | null>(null);
  const value = text ?? name;
  const close = (): void => {
    setText(null);
    onClose();
  };
  return (
    <FormDialog
      open={open}
      title={title}
      submit={t('list.save')}
      cancel={t('list.cancel')}
      blocked={value.trim() ? undefined : t('list.nameMissing')}
      onClose={close}
      onSubmit={() => {
        onName(value.trim());
        setText(null);
      }}
    >
      <p className="bai-help">{t('launchPage.saveHelp')}</p>
      <Field label={t('list.viewName')} value={value} onChange={setText} />
    </FormDialog>
  );
}

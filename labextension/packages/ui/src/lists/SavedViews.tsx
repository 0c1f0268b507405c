import { Bookmark, BookmarkPlus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Field } from '../kit/Field';
import { FormDialog } from '../kit/FormDialog';
import { MenuButton, type MenuEntry } from '../kit/Menu';
import { useForgetting, useOwn } from './remembered';
import type { Viewing } from './useView';
import type { ListView } from './view';

interface Saved {
  title: string;
  view: Pick<ListView, 'search' | 'filters' | 'order'>;
}

interface Props {
  name: string;
  viewing: Viewing;
  /** Whether there is anything to save. */
  narrowed: boolean;
}

const NONE: Saved[] = [];

/** Filters under a name, kept in this browser for who has named them. */
export function SavedViews({ name, viewing, narrowed }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  useForgetting(`bai.filters.${name}`);
  const [saved, setSaved] = useOwn(`bai.filters.${name}`, NONE);
  const [naming, setNaming] = useState(false);
  const { view, replace } = viewing;
  const { search, filters, order } = view;
  const save = (title: string): void => {
    const others = saved.filter(each => each.title !== title);
    setSaved([...others, { title, view: { search, filters, order } }]);
    setNaming(false);
  };
  const remove = (gone: Saved): void => {
    setSaved(saved.filter(each => each !== gone));
    host.notify('info', t('list.viewRemoved', { name: gone.title }), () => setSaved(saved));
  };
  const current = saved.find(each => isSame(each.view, view));
  const entries: MenuEntry[] = [
    ...saved.map(each => ({
      key: `go ${each.title}`,
      text: each.title,
      icon: <Bookmark size={16} aria-hidden />,
      selected: each === current,
      onSelect: () => replace({ ...view, ...each.view, after: '' })
    })),
    {
      key: 'save',
      text: t('list.saveView'),
      icon: <BookmarkPlus size={16} aria-hidden />,
      ...(narrowed ? {} : { disabled: t('list.saveNothing') }),
      onSelect: () => setNaming(true)
    },
    ...(current
      ? [
          {
            key: 'remove',
            text: t('list.removeView', { name: current.title }),
            icon: <Trash2 size={16} aria-hidden />,
            onSelect: () => remove(current)
          }
        ]
      : [])
  ];
  return (
    <>
      <MenuButton
        label={t('list.savedViews')}
        icon={<Bookmark size={16} aria-hidden />}
        entries={entries}
      />
      <NameDialog open={naming} onSave={save} onClose={() => setNaming(false)} />
    </>
  );
}

function isSame(one: Saved['view'], other: ListView): boolean {
  const text = ({ search, filters, order }: Saved['view']): string =>
    JSON.stringify([search, order, Object.entries(filters).sort()]);
  return text(one) === text(other);
}

function NameDialog({
  open,
  onSave,
  onClose
}: {
  open: boolean;
  onSave(title: string): void;
  onClose(): void;
}): JSX.Element {
  const { t } = useTranslation();
  const [title, setTitle] = useState('');
  return (
    <FormDialog
      open={open}
      title={t('list.saveView')}
      submit={t('list.save')}
      cancel={t('list.cancel')}
      blocked={title.trim() ? undefined : t('list.nameMissing')}
      onSubmit={() => {
        onSave(title.trim());
        setTitle('');
      }}
      onClose={onClose}
    >
      <p className="bai-help">{t('list.saveHelp')}</p>
      <Field label={t('list.viewName')} value={title} onChange={setTitle} />
    </FormDialog>
  );
}

/** Things in things, opened one by one; the arrow keys walk through what is in sight. */
import { ChevronDown, ChevronRight } from 'lucide-react';
import { useRef, useState, type KeyboardEvent, type ReactNode } from 'react';

export interface TreeNode {
  key: string;
  text: string;
  icon?: ReactNode;
  /** Null while nobody knows; an empty list where there is nothing in it. */
  children: TreeNode[] | null;
}

interface Props {
  label: string;
  roots: TreeNode[];
  open: ReadonlySet<string>;
  chosen: string;
  /** Open or close one. */
  onToggle(key: string): void;
  onChoose(key: string): void;
  /** What is said in place of things in it that are not known yet. */
  loading: string;
}

interface Shown {
  node: TreeNode;
  level: number;
  above: string | null;
}

export function Tree(props: Props): JSX.Element {
  const { label, roots, open, chosen, onToggle, onChoose, loading } = props;
  const list = useRef<HTMLDivElement>(null);
  const shown = flatten(roots, open, 1, null);
  const [current, setCurrent] = useState(chosen);
  // What had the focus may be out of sight by now.
  const focus = shown.some(({ node }) => node.key === current) ? current : roots[0]?.key;
  const go = (key: string | null | undefined): void => {
    if (key !== null && key !== undefined) {
      setCurrent(key);
      list.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
    }
  };
  const press = (event: KeyboardEvent, { node, above }: Shown): void => {
    const at = shown.findIndex(each => each.node.key === node.key);
    const isOpen = open.has(node.key);
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(shown[at + 1]?.node.key),
      ArrowUp: () => go(shown[at - 1]?.node.key),
      Home: () => go(shown[0]?.node.key),
      End: () => go(shown.at(-1)?.node.key),
      ArrowRight: () => (isOpen ? go(node.children?.[0]?.key) : onToggle(node.key)),
      ArrowLeft: () => (isOpen ? onToggle(node.key) : go(above)),
      Enter: () => onChoose(node.key),
      ' ': () => onChoose(node.key)
    };
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  };
  return (
    <div ref={list} role="tree" aria-label={label} className="bai-tree">
      {shown.map(({ node, level, above }) => {
        const isOpen = open.has(node.key);
        const Chevron = isOpen ? ChevronDown : ChevronRight;
        return (
          <div
            key={node.key}
            role="treeitem"
            data-key={node.key}
            aria-level={level}
            aria-expanded={node.children?.length === 0 ? undefined : isOpen}
            aria-selected={node.key === chosen}
            tabIndex={node.key === focus ? 0 : -1}
            className="bai-tree-item"
            style={{ paddingInlineStart: `${(level - 1) * 18 + 4}px` }}
            onFocus={() => setCurrent(node.key)}
            onClick={() => onChoose(node.key)}
            onKeyDown={event => press(event, { node, level, above })}
          >
            {/* For the pointer alone: the keyboard has its arrows. */}
            {/* eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions */}
            <span
              className="bai-tree-open"
              data-empty={node.children?.length === 0 ? '' : undefined}
              onClick={event => {
                event.stopPropagation();
                onToggle(node.key);
              }}
            >
              <Chevron size={16} aria-hidden />
            </span>
            {node.icon}
            <bdi className="bai-tree-text">{node.text}</bdi>
            {isOpen && node.children === null ? (
              <span className="bai-help">{loading}</span>
            ) : null}
          </div>
        );
      })}
    </div>
  );
}

function flatten(
  nodes: TreeNode[],
  open: ReadonlySet<string>,
  level: number,
  above: string | null
): Shown[] {
  return nodes.flatMap(node => [
    { node, level, above },
    ...(open.has(node.key) ? flatten(node.children ?? [], open, level + 1, node.key) : [])
  ]);
}

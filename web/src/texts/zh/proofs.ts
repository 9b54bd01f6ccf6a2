// 账户在批次市场中的持有情况的证明。

import type { proofs as en } from "../en/proofs.ts";

export const proofs: typeof en = {
  proofs: {
    checked: (block) => `✓ 已验证：区块 ${block} 之后确实如此。`,
    differs: (block) => `⚠ 交易所自己对区块 ${block} 的证明与此不符。`,
    words: (block, root) =>
      `✓ 表示已在此浏览器中按区块的状态根验证，最近一次是区块 ${block}：${root}。状态根来自本交易所，请与其他副本的核对。`,
    contradicted: (block, root) =>
      `⚠ 表示交易所自己的证明与其显示的内容不符。请联系运营方，并将区块 ${block} 的状态根 ${root} 与其他副本的核对。`,
    whole: (block, root) => `区块 ${block} 的状态根：${root}`,
    broken: (block, why) => `⚠ 交易所关于区块 ${block} 的证明不成立：${why}。请与其他副本核对。`,
    faults: {
      1: "其格式版本本页无法识别，请重新加载页面",
      2: "其格式有误",
      3: "它属于另一个区块",
      4: "它没有证明所查询的内容",
      5: "它证明了不可能的内容",
      7: "该区块没有接在前一区块之后",
    },
  },
};

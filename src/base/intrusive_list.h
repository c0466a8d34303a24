// A doubly linked list whose links live in the elements: nothing is allocated, an element can unlink itself, and does
// so when it is destroyed. One hook type per list an element can be in.
#pragma once

#include <cstddef>

#include "base/check.h"

namespace talweg {

template <class Which>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  bool linked() const { return next_ != nullptr; }
  void unlink() {
    if (next_ == nullptr) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = nullptr;
  }

 private:
  template <class, class>
  friend class IntrusiveList;
  ListHook* next_ = nullptr;
  ListHook* previous_ = nullptr;
};

template <class T, class Which>
class IntrusiveList {
 public:
  IntrusiveList() { root_.next_ = root_.previous_ = &root_; }
  ~IntrusiveList() { clear(); }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return root_.next_ == &root_; }
  T* front() const { return empty() ? nullptr : element(root_.next_); }
  T* next(T& element_before) const {
    Hook* hook = static_cast<Hook&>(element_before).next_;
    return hook == &root_ ? nullptr : element(hook);
  }
  void push_back(T& value) {
    Hook& hook = value;
    CHECK(!hook.linked());
    hook.previous_ = root_.previous_;
    hook.next_ = &root_;
    root_.previous_->next_ = &hook;
    root_.previous_ = &hook;
  }
  T* pop_front() {
    T* first = front();
    if (first != nullptr) static_cast<Hook&>(*first).unlink();
    return first;
  }
  void clear() {
    while (pop_front() != nullptr) {
    }
  }
  // Moves all of `other` to the end of this list.
  void take(IntrusiveList& other) {
    while (T* value = other.pop_front()) push_back(*value);
  }

 private:
  using Hook = ListHook<Which>;
  static T* element(Hook* hook) { return static_cast<T*>(hook); }
  Hook root_;
};

}  // namespace talweg

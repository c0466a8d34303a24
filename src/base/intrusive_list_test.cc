#include "base/intrusive_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace talweg {
namespace {

struct First;
struct Second;
struct Element : ListHook<First>, ListHook<Second> {
  explicit Element(int number) : number(number) {}
  int number;
};
using FirstList = IntrusiveList<Element, First>;
using SecondList = IntrusiveList<Element, Second>;

template <class List>
std::vector<int> numbers(const List& list) {
  std::vector<int> all;
  for (Element* e = list.front(); e != nullptr; e = list.next(*e)) all.push_back(e->number);
  return all;
}
bool in_first(const Element& e) { return static_cast<const ListHook<First>&>(e).linked(); }

TEST(IntrusiveList, keeps_the_order_of_arrival) {
  Element a(1), b(2), c(3);
  FirstList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
  for (Element* e : {&a, &b, &c}) list.push_back(*e);
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(list.pop_front(), &a);
  EXPECT_FALSE(in_first(a));
  list.push_back(a);
  EXPECT_EQ(numbers(list), (std::vector<int>{2, 3, 1}));
}

TEST(IntrusiveList, an_element_leaves_by_itself_and_when_it_is_destroyed) {
  Element a(1), c(3);
  FirstList list;
  list.push_back(a);
  {
    Element b(2);
    list.push_back(b);
    list.push_back(c);
    EXPECT_EQ(numbers(list), (std::vector<int>{1, 2, 3}));
  }
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 3}));
  static_cast<ListHook<First>&>(a).unlink();
  static_cast<ListHook<First>&>(a).unlink();
  EXPECT_EQ(numbers(list), std::vector<int>{3});
}

TEST(IntrusiveList, an_element_can_be_in_one_list_per_hook) {
  Element a(1), b(2);
  FirstList first;
  SecondList second;
  first.push_back(a);
  first.push_back(b);
  second.push_back(b);
  second.push_back(a);
  first.clear();
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(numbers(second), (std::vector<int>{2, 1}));
}

TEST(IntrusiveList, a_list_that_goes_leaves_its_elements_unlinked) {
  Element a(1);
  {
    FirstList list;
    list.push_back(a);
    EXPECT_TRUE(in_first(a));
  }
  EXPECT_FALSE(in_first(a));
}

TEST(IntrusiveList, takes_all_of_another_list_in_order) {
  Element a(1), b(2), c(3);
  FirstList list, other;
  list.push_back(a);
  other.push_back(b);
  other.push_back(c);
  list.take(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 2, 3}));
}

TEST(IntrusiveListDeathTest, being_in_a_list_twice_is_a_broken_invariant) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Element a(1);
  FirstList list;
  list.push_back(a);
  EXPECT_DEATH(list.push_back(a), "broken invariant: !hook.linked\\(\\)");
}

}  // namespace
}  // namespace talweg
